// The command line by CLI11.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>

namespace overlap::progressd {
namespace {

/// One of these at most.
struct Commands {
  bool status = false;
  bool on = false;
  bool off = false;
  bool stop = false;

  [[nodiscard]] Command chosen() const {
    if (status + on + off + stop > 1)
      throw UsageError("choose one of --status, --on, --off and --stop");
    if (status) return Command::status;
    if (on) return Command::on;
    if (off) return Command::off;
    return stop ? Command::stop : Command::serve;
  }
};

bool is_name(const std::string& text) {
  constexpr std::size_t chars_max = 32;
  return text.size() <= chars_max && std::all_of(text.begin(), text.end(), [](unsigned char each) {
           return std::isalnum(each) != 0 || each == '-' || each == '_';
         });
}

unsigned number_of(const std::string& name, const std::string& text, unsigned min, unsigned max) {
  const auto list = processors_of(text);
  if (!list || list->size() != 1 || *list->begin() < min || *list->begin() > max) {
    throw UsageError(name + " wants a number from " + std::to_string(min) + " to " +
                     std::to_string(max) + ", not \"" + text + "\"");
  }
  return *list->begin();
}

}  // namespace

Options parse(int count, const char* const* arguments) {
  Options options;
  Commands commands;
  std::string helpers = "1";
  std::string spin_ms = "20";
  std::string bind;
  bool version = false;
  CLI::App app(
      "Wake MPI processes of this node when what they wait for has arrived, while they compute.\n"
      "Without a command: become the helper of this user on this node.",
      "ompi-progressd");
  app.set_help_flag("-h,--help", "Print this text");
  app.add_flag("--version", version, "Print the version");
  app.add_flag("--status", commands.status, "Print what the helper does");
  app.add_flag("--json", options.json, "With --status: as JSON");
  app.add_flag("--on", commands.on, "Let the helper work again");
  app.add_flag("--off", commands.off,
               "Let the helper rest; senders wake their receivers themselves");
  app.add_flag("--stop", commands.stop, "End the helper");
  app.add_flag("--foreground", options.foreground, "Do not detach (for systemd)");
  app.add_flag("--exit-when-idle", options.exit_when_idle, "End with the last client");
  app.add_option("--helpers", helpers, "Threads that look; clients are spread over them (1 to 64)");
  app.add_option("--bind", bind,
                 "Processors to sit on, for instance 3 or 6-7 (default: a spare core)");
  app.add_flag("--share-core", options.placement.share_core, "Sit also where a client is bound");
  app.add_option("--spin-ms", spin_ms,
                 "How long to look all the time when nothing comes (0 to 10000, default 20)");
  app.add_option("--name", options.name, "Another helper beside the usual one, for tests");
  try {
    app.parse(count, arguments);
  } catch (const CLI::CallForHelp&) {
    options.command = Command::help;
    options.help = app.help();
    return options;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = app.remaining();
    throw UsageError("there is no option " + (extras.empty() ? std::string() : extras.front()));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  options.command = version ? Command::version : commands.chosen();
  if (options.json && options.command != Command::status)
    throw UsageError("--json goes with --status");
  options.placement.helpers = number_of("--helpers", helpers, 1, 64);
  options.spin_ms = number_of("--spin-ms", spin_ms, 0, 10000);
  if (!bind.empty()) {
    const auto processors = processors_of(bind);
    if (!processors)
      throw UsageError("--bind wants a list of processors such as 0,2-5, not \"" + bind + "\"");
    options.placement.bind = *processors;
  }
  if (!is_name(options.name))
    throw UsageError("--name wants at most 32 letters, digits, - and _, not \"" + options.name +
                     "\"");
  return options;
}

}  // namespace overlap::progressd

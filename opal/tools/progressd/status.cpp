// JSON and text.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/status.hpp"

#include <nlohmann/json.hpp>

#include <cstdarg>
#include <cstdio>

namespace overlap::progressd {
namespace {

using nlohmann::json;

std::string line(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string line(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return std::string(text) + "\n";
}

unsigned long long number(const json& object, const char* name) {
  return object.at(name).get<std::uint64_t>();
}
std::string word(const json& object, const char* name) {
  return object.at(name).get<std::string>();
}
std::string ms(std::uint64_t us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", static_cast<double>(us) / 1000.0);
  return text;
}

std::string helper_lines(const json& helpers) {
  std::string text = line("%-6s  %-12s  %-8s  %7s  %8s  %8s  %14s", "helper", "processors", "state",
                          "clients", "wakes", "left out", "processor time");
  std::size_t i = 0;
  for (const json& each : helpers) {
    const std::string processors = word(each, "processors");
    text += line("%-6zu  %-12s  %-8s  %7llu  %8llu  %8llu  %14s", i++,
                 processors.empty() ? "any" : processors.c_str(), word(each, "state").c_str(),
                 number(each, "clients"), number(each, "wakes"),
                 number(each, "polled") + number(each, "obsolete") + number(each, "unwanted"),
                 ms(number(each, "processor_us")).c_str());
  }
  return text;
}

std::string client_lines(const json& clients) {
  if (clients.empty()) return "no clients\n";
  std::string text = line("%-8s  %-18s  %4s  %6s  %-8s  %-7s  %5s  %8s  %8s", "process", "job",
                          "rank", "helper", "thread", "watched", "waits", "wakes", "futile");
  for (const json& each : clients) {
    text += line(
        "%-8lld  0x%-16llx  %4lld  %6llu  %-8s  %-7s  %5llu  %8llu  %8llu",
        static_cast<long long>(each.at("process").get<std::int64_t>()), number(each, "job"),
        static_cast<long long>(each.at("local_rank").get<std::int64_t>()), number(each, "helper"),
        word(each, "thread").c_str(), each.at("watched").get<bool>() ? "yes" : "no",
        number(each, "waits"), number(each, "wakes"), number(each, "futile_wakes"));
  }
  return text;
}

json json_of(const WatcherStatus& each) {
  return {{"processors", each.processors},
          {"state", each.state},
          {"clients", each.clients},
          {"wakes", each.wakes},
          {"polled", each.polled},
          {"obsolete", each.obsolete},
          {"unwanted", each.unwanted},
          {"sleeps", each.sleeps},
          {"processor_us", each.processor_us}};
}

json json_of(const ClientStatus& each) {
  return {{"process", each.process}, {"job", each.job},     {"local_rank", each.local_rank},
          {"helper", each.helper},   {"thread", each.doze}, {"watched", each.watched},
          {"waits", each.waits},     {"wakes", each.wakes}, {"futile_wakes", each.wakes_futile}};
}

}  // namespace

std::string json_of(const Status& status) {
  json helpers = json::array();
  json clients = json::array();
  std::uint64_t wakes = 0;
  for (const WatcherStatus& each : status.helpers) {
    helpers.push_back(json_of(each));
    wakes += each.wakes;
  }
  for (const ClientStatus& each : status.clients) clients.push_back(json_of(each));
  const json all = {{"version", status.version},
                    {"process", status.process},
                    {"on", status.on},
                    {"why_off", status.why_off},
                    {"exit_when_idle", status.exit_when_idle},
                    {"wakes", wakes},
                    {"futile_wakes", status.wakes_futile},
                    {"processor_us", status.processor_us},
                    {"helpers", helpers},
                    {"clients", clients}};
  // What is not UTF-8 is replaced rather than thrown about.
  return all.dump(2, ' ', false, json::error_handler_t::replace);
}

std::string text_of_json(const std::string& text) try {
  const json all = json::parse(text);
  const std::string why_off = word(all, "why_off");
  std::string state = all.at("on").get<bool>() ? "on" : "off";
  if (!why_off.empty()) state = "resting: " + why_off;
  std::string lines = "ompi-progressd " + word(all, "version") + ", process " +
                      std::to_string(all.at("process").get<std::int64_t>()) + ", " + state +
                      (all.at("exit_when_idle").get<bool>() ? "; ends with its last client" : "") +
                      "\n";
  lines += line("%llu wakes, %llu futile wakes, %s of processor time", number(all, "wakes"),
                number(all, "futile_wakes"), ms(number(all, "processor_us")).c_str());
  return lines + helper_lines(all.at("helpers")) + client_lines(all.at("clients"));
} catch (const json::exception&) {
  return {};
}

}  // namespace overlap::progressd

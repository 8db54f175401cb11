// The command line of ring-calibrate, by getopt_long.
// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <getopt.h>

#include <charconv>
#include <cstring>

namespace overlap::ring_calibrate {
namespace {

constexpr int only_long = 256;
enum LongOnly : int { csv = only_long, quick, version, fraction, ring_slots, slot_bytes };

constexpr option known[] = {
    {"fabric", required_argument, nullptr, 'f'},
    {"device", required_argument, nullptr, 'd'},
    {"fraction", required_argument, nullptr, fraction},
    {"ring-slots", required_argument, nullptr, ring_slots},
    {"slot-bytes", required_argument, nullptr, slot_bytes},
    {"csv", no_argument, nullptr, csv},
    {"quick", no_argument, nullptr, quick},
    {"help", no_argument, nullptr, 'h'},
    {"version", no_argument, nullptr, version},
    {nullptr, 0, nullptr, 0},
};

Fabric fabric_of(const char* name) {
  if (std::strcmp(name, "auto") == 0) return Fabric::automatic;
  if (std::strcmp(name, "verbs") == 0) return Fabric::verbs;
  if (std::strcmp(name, "soft") == 0) return Fabric::soft;
  throw UsageError(std::string("--fabric ") + name + ": there are auto, verbs and soft");
}

std::uint32_t number_of(const char* name, const char* text, std::uint32_t min, std::uint32_t max) {
  std::uint32_t value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stopped != end || value < min || value > max) {
    throw UsageError(std::string("--") + name + " " + text + ": a number from " +
                     std::to_string(min) + " to " + std::to_string(max) + " is wanted");
  }
  return value;
}

/// The word that getopt_long could not make sense of.
UsageError unknown(char** arguments, int code) {
  if (code == ':') return UsageError(std::string(arguments[optind - 1]) + " wants a value");
  if (optopt != 0 && optopt < only_long) {
    return UsageError(std::string("there is no option -") + static_cast<char>(optopt) +
                      " (--help lists them)");
  }
  return UsageError(std::string("there is no option ") + arguments[optind - 1] +
                    " (--help lists them)");
}

}  // namespace

Options parse(int count, char** arguments) {
  Options options;
  opterr = 0;  // one sentence of ours instead
  for (int code = 0; (code = getopt_long(count, arguments, ":f:d:h", known, nullptr)) != -1;) {
    switch (code) {
      case 'f': options.fabric = fabric_of(optarg); break;
      case 'd': options.device = optarg; break;
      case 'h': options.help = true; break;
      case csv: options.csv = true; break;
      case quick: options.quick = true; break;
      case version: options.version = true; break;
      case fraction: options.fraction = number_of("fraction", optarg, 1, 1000); break;
      case ring_slots: options.ring_slots = number_of("ring-slots", optarg, 5, 4096); break;
      case slot_bytes:
        options.slot_bytes = (number_of("slot-bytes", optarg, 256, 65536) + 63) / 64 * 64;
        break;
      default: throw unknown(arguments, code);
    }
  }
  if (optind < count)
    throw UsageError(std::string("what is ") + arguments[optind] + "? (--help lists the options)");
  if (options.fabric == Fabric::soft && !options.device.empty())
    throw UsageError("--device goes with verbs; the software device has no name");
  return options;
}

const char* usage() noexcept {
  return "usage: ring-calibrate [--fabric auto|verbs|soft] [--device NAME] [OPTION...]\n"
         "\n"
         "Measure on this machine what btl/ring wants to know: what registering a buffer costs "
         "(R), copying it (C) and looking it up (V),\n"
         "after how many uses a registration pays, and what looking at the rings of idle peers "
         "costs. Ends with the lines to put into an\n"
         "MCA parameter file. Takes a few seconds; nothing else should run meanwhile.\n"
         "\n"
         "  -f, --fabric NAME    auto (default) takes verbs where a usable device is; soft is the "
         "software device\n"
         "  -d, --device NAME    verbs device, for instance mlx5_0 or mlx5_0:1 (default: the first "
         "with an active port)\n"
         "      --fraction PCT   share of the paying uses after which a buffer is registered "
         "(default: 25)\n"
         "      --ring-slots N   eager buffers per peer, for the time to poll (default: 100)\n"
         "      --slot-bytes N   size of one of them (default: 2048)\n"
         "      --quick          fewer repetitions\n"
         "      --csv            lines for programs instead of tables\n"
         "  -h, --help           this text\n"
         "      --version        version\n";
}

}  // namespace overlap::ring_calibrate

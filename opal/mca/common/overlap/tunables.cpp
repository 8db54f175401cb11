// Tunables without Open MPI: range check, nearest name, texts for ompi_info, README and man page.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/tunables.hpp"

#include "opal/mca/common/overlap/names.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace overlap {

namespace {

constexpr std::string_view environment_prefix = "OMPI_MCA_";

/// What the storage holds; a u64 above 2^63 - 1 counts as that.
std::int64_t stored_value(const TunableRow& row) {
  switch (row.type) {
    case TunableType::u32: return *static_cast<const std::uint32_t*>(row.storage);
    case TunableType::u64: {
      constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
      return static_cast<std::int64_t>(
          std::min(*static_cast<const std::uint64_t*>(row.storage), largest));
    }
    case TunableType::i32: return *static_cast<const std::int32_t*>(row.storage);
    case TunableType::flag: return *static_cast<const bool*>(row.storage);
    case TunableType::choice: return *static_cast<const int*>(row.storage);
    case TunableType::text: return 0;
  }
  return 0;
}

bool is_number(TunableType type) {
  return type == TunableType::u32 || type == TunableType::u64 || type == TunableType::i32;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";  // also of a file with the line ends of Windows
  const auto first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

enum class Reading : std::uint8_t { number, not_a_number, too_large };

struct Parsed {
  Reading reading;
  std::int64_t value;
};

/// Read a number as Open MPI does (sign, 0x, leading 0 for octal, suffix k m g), but refuse what it
/// would bend.
Parsed parse_number(std::string_view text) {
  text = trimmed(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.front() == '0') {
    base = 8;
  }
  std::uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (error == std::errc::invalid_argument) return {Reading::not_a_number, 0};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  unsigned shift = 0;
  if (text == "k" || text == "K")
    shift = 10;
  else if (text == "m" || text == "M")
    shift = 20;
  else if (text == "g" || text == "G")
    shift = 30;
  else if (!text.empty())
    return {Reading::not_a_number, 0};
  constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
  if (error == std::errc::result_out_of_range || magnitude > largest >> shift)
    return {Reading::too_large, 0};
  const auto value = static_cast<std::int64_t>(magnitude << shift);
  return {Reading::number, negative ? -value : value};
}

std::string quoted(std::string_view text) {
  return std::string(1, '"').append(text).append(1, '"');
}

/// The one sentence pair about a value that will not do.
std::string fault_text(std::string_view prefix, const TunableRow& row, std::string_view given,
                       std::string_view why) {
  const std::string full_name = std::string(prefix) + row.name;
  return full_name + " is " + std::string(given) + ", " + std::string(why) +
         "; allowed: " + allowed_text(row) + ". Set it to one of these, for instance \"--mca " +
         full_name + " " + value_text(row, row.default_value) +
         "\" (the default), or remove the setting.";
}

std::string_view range_fault(const TunableRow& row, std::int64_t value) {
  if (value < row.min) return "too small";
  if (value > row.max) return "too large";
  return {};
}

std::string default_text(const TunableRow& row) {
  const std::string value = value_text(row, row.default_value);
  return is_number(row.type) && *row.unit ? value + " " + row.unit : value;
}

std::string man_escaped(std::string_view text) {
  std::string escaped = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
  }
  return escaped;
}

std::string markdown_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// Is it upper case in front, a full stop at the end, and one sentence?
bool is_sentence(std::string_view text) {
  return text.size() > 1 && text.back() == '.' && text.front() >= 'A' && text.front() <= 'Z' &&
         text.find(". ") == text.npos;
}

std::string row_fault(const TunableRow& row) {
  if (!*row.name) return "has no name";
  if (!is_sentence(row.help)) return "has a help text that is not one sentence with a full stop";
  if (row.level < 1 || row.level > 9) return "has a level outside 1 .. 9";
  if (row.min > row.max) return "has min above max";
  if (!range_fault(row, row.default_value).empty()) return "has a default outside its range";
  if (!row.storage) return "has no storage";
  if (row.type == TunableType::u32 &&
      (row.min < 0 || row.max > std::numeric_limits<std::uint32_t>::max()))
    return "has a range that a u32 cannot hold";
  if (row.type == TunableType::u64 && row.min < 0) return "has a range that a u64 cannot hold";
  if (row.type == TunableType::i32 && (row.min < std::numeric_limits<std::int32_t>::min() ||
                                       row.max > std::numeric_limits<std::int32_t>::max()))
    return "has a range that an i32 cannot hold";
  if (row.type == TunableType::flag && (row.min != 0 || row.max != 1))
    return "is a flag with a range other than 0 .. 1";
  return {};
}

}  // namespace

std::vector<std::string> choice_names(const TunableRow& row) {
  std::vector<std::string> names;
  std::string_view rest = row.choices;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    std::string_view name = trimmed(rest.substr(0, comma));
    if (name.ends_with('_')) name.remove_suffix(1);
    names.emplace_back(name);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return names;
}

std::string value_text(const TunableRow& row, std::int64_t value) {
  if (row.type == TunableType::flag) return value ? "true" : "false";
  if (row.type == TunableType::text) return "empty";
  if (row.type == TunableType::choice) {
    const auto names = choice_names(row);
    if (value >= 0 && value < static_cast<std::int64_t>(names.size()))
      return names[static_cast<std::size_t>(value)];
  }
  return std::to_string(value);
}

std::string stored_text(const TunableRow& row) {
  if (row.type == TunableType::u64)
    return std::to_string(*static_cast<const std::uint64_t*>(row.storage));
  if (row.type == TunableType::text) {
    const char* text = *static_cast<const char* const*>(row.storage);
    return text ? text : "";
  }
  return value_text(row, stored_value(row));
}

std::string allowed_text(const TunableRow& row) {
  if (row.type == TunableType::flag) return "true | false";
  if (row.type == TunableType::text) return "text";
  if (row.type == TunableType::choice) {
    std::string text;
    for (const auto& name : choice_names(row)) text += (text.empty() ? "" : " | ") + name;
    return text;
  }
  const std::string range = std::to_string(row.min) + " .. " + std::to_string(row.max);
  return *row.unit ? range + " " + row.unit : range;
}

std::string help_text(const TunableRow& row) {
  std::string text = row.help;
  text += " [level " + std::to_string(row.level) + "; default " + default_text(row) + "; allowed " +
          allowed_text(row) + "]";
  return text;
}

std::string check_value(std::string_view prefix, const TunableRow& row) {
  const std::string_view why = range_fault(row, stored_value(row));
  return why.empty() ? std::string() : fault_text(prefix, row, stored_text(row), why);
}

std::string choice_fault(std::string_view prefix, const TunableRow& row, std::string_view given) {
  return fault_text(prefix, row, quoted(given), "which is no choice");
}

std::string check_text(std::string_view prefix, const TunableRow& row, std::string_view given) {
  if (given.empty())
    return {};  // Open MPI reads it as 0 or keeps the default; check_value judges that
  if (row.type == TunableType::flag || row.type == TunableType::text)
    return {};  // Open MPI refuses what is no truth value; a text may be anything
  const Parsed parsed = parse_number(given);
  if (row.type == TunableType::choice) {
    const auto names = choice_names(row);
    if (std::ranges::find(names, given) != names.end() ||
        (parsed.reading == Reading::number && range_fault(row, parsed.value).empty()))
      return {};
    return choice_fault(prefix, row, given);
  }
  switch (parsed.reading) {
    case Reading::not_a_number: return fault_text(prefix, row, quoted(given), "which is no number");
    case Reading::too_large: return fault_text(prefix, row, given, "too large");
    case Reading::number: break;
  }
  const std::string_view why = range_fault(row, parsed.value);
  return why.empty() ? std::string() : fault_text(prefix, row, given, why);
}

std::vector<std::string> unknown_names(std::string_view prefix, std::span<const TunableRow> rows,
                                       std::span<const std::string_view> environment,
                                       std::span<const std::string_view> also_known) {
  std::vector<std::string> full_names;
  for (const TunableRow& row : rows) full_names.push_back(std::string(prefix) + row.name);
  std::vector<std::string_view> known(full_names.begin(), full_names.end());
  known.insert(known.end(), also_known.begin(), also_known.end());

  std::vector<std::string> sentences;
  for (std::string_view entry : environment) {
    entry = entry.substr(0, entry.find('='));
    if (!entry.starts_with(environment_prefix)) continue;
    const std::string_view given = entry.substr(environment_prefix.size());
    if (!given.starts_with(prefix) || std::ranges::find(known, given) != known.end()) continue;
    // Compare what differs only: the common prefix would make any two names look near.
    std::vector<std::string_view> tails;
    for (const std::string_view name : known)
      tails.push_back(name.starts_with(prefix) ? name.substr(prefix.size()) : name);
    std::string sentence =
        "There is no tunable " + std::string(given) + "; the setting has no effect.";
    if (const auto nearest = nearest_name(given.substr(prefix.size()), tails))
      sentence += " Did you mean " + std::string(prefix) + std::string(*nearest) + "?";
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::string table_fault(std::span<const TunableRow> rows) {
  std::vector<std::string_view> names;
  for (const TunableRow& row : rows) {
    std::string fault = row_fault(row);
    if (fault.empty() && std::ranges::find(names, row.name) != names.end())
      fault = "is there twice";
    if (!fault.empty()) return std::string(row.name) + " " + fault;
    names.emplace_back(row.name);
  }
  return {};
}

std::string render_markdown(std::string_view prefix, std::span<const TunableRow> rows) {
  std::string text =
      "| tunable | default | allowed | level | what it does |\n|---|---|---|---|---|\n";
  for (const TunableRow& row : rows)
    text += "| `" + std::string(prefix) + row.name + "` | " + value_text(row, row.default_value) +
            " | " + markdown_escaped(allowed_text(row)) + " | " + std::to_string(row.level) +
            " | " + markdown_escaped(row.help) + " |\n";
  return text;
}

std::string render_man(std::string_view prefix, std::span<const TunableRow> rows) {
  std::string text;
  for (const TunableRow& row : rows)
    text += ".TP\n.B " + man_escaped(std::string(prefix) + row.name) + "\n" +
            man_escaped(row.help) + "\nDefault " + man_escaped(default_text(row)) + "; allowed " +
            man_escaped(allowed_text(row)) + "; level " + std::to_string(row.level) + ".\n";
  return text;
}

}  // namespace overlap

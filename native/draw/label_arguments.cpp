#include "draw/label_arguments.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "stepstats/ascii.h"

namespace collector::draw {

using stepstats::Activity;
using stepstats::Detail;

namespace {

// Whether a text consists of comma-separated numbers in JSON's form, without leading zeros.
bool is_number_list(std::string_view text) {
  size_t digits = 0;
  bool leading_zero = false;
  for (const char letter : text) {
    if (stepstats::is_digit(letter)) {
      if (digits == 1 && leading_zero) return false;
      leading_zero = digits == 0 && letter == '0';
      ++digits;
    } else if (letter == ',' && digits > 0) {
      digits = 0;
    } else {
      return false;
    }
  }
  return digits > 0;
}

// The names that viewers show beside a slice. Other keys of a label are shown unchanged.
std::string_view readable_key(std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"regs", "registers"},
      {"shm", "shared_bytes"},
      {"static_shared", "static_shared_bytes"},
      {"dynamic_shared", "dynamic_shared_bytes"},
      {"occ_pct", "occupancy_percent"},
  };
  for (const auto& [written, readable] : kKeys) {
    if (key == written) return readable;
  }
  return key;
}

}  // namespace

Argument written_argument(std::string_view key, std::string_view value) {
  Argument argument{key, Argument::Kind::kText, 0, value};
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, argument.number);
  if (error == std::errc() && stop == end)
    argument.kind = Argument::Kind::kNumber;
  else if (is_number_list(value))
    argument.kind = Argument::Kind::kNumbers;
  return argument;
}

void add_label_arguments(const Activity& activity, std::vector<Argument>& arguments) {
  const auto add_number = [&arguments](std::string_view key, int64_t number) {
    arguments.push_back({key, Argument::Kind::kNumber, number, {}});
  };
  const auto add_text = [&arguments](std::string_view key, std::string_view text) {
    if (!text.empty()) arguments.push_back({key, Argument::Kind::kText, 0, text});
  };
  add_text("kernel", activity.full_name);
  add_text("op", activity.op);
  add_text("inputs", activity.inputs);
  if (activity.num_bytes >= 0) add_number("bytes", activity.num_bytes);
  add_text("from", activity.from);
  add_text("to", activity.to);
  for (size_t i = 0; i < activity.num_details; ++i) {
    const Detail& detail = activity.details[i];
    const auto has_key = [&](const Argument& argument) { return argument.key == readable_key(detail.key); };
    if (std::any_of(arguments.begin(), arguments.end(), has_key)) continue;
    arguments.push_back(written_argument(readable_key(detail.key), detail.value));
  }
}

}  // namespace collector::draw

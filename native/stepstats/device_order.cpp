#include "stepstats/device_order.h"

#include <algorithm>
#include <cstddef>

#include "stepstats/ascii.h"

namespace collector::stepstats {
namespace {

// Removes the leading digits of a text and returns them without leading zeros.
std::string_view take_number(std::string_view& text) {
  const auto* const end = std::find_if_not(text.begin(), text.end(), is_digit);
  std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

// Negative, 0 or positive if `a` comes before, with or after `b` in natural order: numbers by value, other text by
// bytes.
int compare_naturally(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const bool number_in_both = is_digit(a.front()) && is_digit(b.front());
    if (number_in_both) {
      const std::string_view left = take_number(a);
      const std::string_view right = take_number(b);
      if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
      if (const int order = left.compare(right); order != 0) return order;
    } else {
      if (is_digit(a.front()) != is_digit(b.front())) return is_digit(a.front()) ? -1 : 1;
      if (a.front() != b.front())
        return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front()) ? -1 : 1;
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() == b.empty() ? 0 : a.empty() ? -1 : 1;
}

}  // namespace

bool comes_before(const DeviceName& a, std::string_view device_a, const DeviceName& b, std::string_view device_b) {
  if (a.process_kind != b.process_kind) return a.process_kind < b.process_kind;
  if (const int order = compare_naturally(a.process, b.process); order != 0) return order < 0;
  if (a.process != b.process) return a.process < b.process;
  if (a.kind != b.kind) return a.kind < b.kind;
  if (const int order = compare_naturally(a.track, b.track); order != 0) return order < 0;
  return device_a < device_b;
}

}  // namespace collector::stepstats

// Throws damaged JSON at the scanner of Chrome traces: in pieces of any size it must say what it says of the whole
// text.
//
// An input is the text itself, so that the kept inputs of the readers serve here as well; its last byte chooses the
// size of the pieces. Built with -DCOLLECTOR_FUZZ=ON by Clang this is a libFuzzer program.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "checks.h"
#include "read/chrome_scanner.h"

namespace collector::fuzz {
namespace {

using namespace collector::read;  // NOLINT(google-build-using-namespace): all of it is under test

std::unique_ptr<ChromeScanner> scanned(std::string_view text, size_t piece) {
  auto scanner = std::make_unique<ChromeScanner>();
  for (size_t at = 0; at < text.size(); at += piece) {
    // A copy without a byte behind it, so that a byte too many is one beyond the end of a block of memory.
    const std::string_view part = text.substr(at, piece);
    const auto copy = std::make_unique<char[]>(part.size());
    part.copy(copy.get(), part.size());
    if (!scanner->feed({copy.get(), part.size()})) break;
  }
  scanner->finish();
  return scanner;
}

void append(std::string& about, std::string_view text) { about.append(text) += '\x1F'; }
void append(std::string& about, int64_t number) { append(about, std::to_string(number)); }

// All that a scanner knows.
std::string described(const ChromeScanner& scanner, size_t num_bytes) {
  std::string about;
  for (size_t row = 0; row < scanner.events().size(); ++row) {
    const ChromeEvent& event = scanner.events()[row];
    require(scanner.has_text(event.name) && scanner.has_text(event.category), "an event has a text that is not there");
    require(event.track < scanner.tracks().size(), "an event has a track that is not there");
    require(event.shape < scanner.shapes().size(), "an event has a shape that is not there");
    append(about, std::string_view(&event.phase, 1));
    append(about, scanner.text(event.name));
    append(about, scanner.text(event.category));
    append(about, event.start_ns);
    append(about, event.duration_ns);
    append(about, scanner.tracks()[event.track].first);
    append(about, scanner.tracks()[event.track].second);
    const auto at = static_cast<int64_t>(row);
    for (const uint16_t argument : scanner.shapes()[event.shape]) {
      const bool is_text = scanner.texts(argument).has(row);
      require(is_text != scanner.numbers(argument).has(row), "an argument is not either a number or a text");
      int64_t value = 0;
      (is_text ? scanner.texts(argument) : scanner.numbers(argument)).gather(&at, 1, -1, &value);
      append(about, scanner.argument_names()[argument]);
      if (!is_text) {
        append(about, value);
        continue;
      }
      require(value >= 0 && scanner.has_text(static_cast<uint64_t>(value)), "an argument has a text that is not there");
      append(about, scanner.text(static_cast<uint32_t>(value)));
    }
  }
  for (const auto& [name, value] : scanner.members()) {
    append(about, name);
    append(about, value);
  }
  append(about, static_cast<int64_t>(scanner.num_entries()));
  append(about, static_cast<int64_t>(scanner.num_not_objects()));
  append(about, static_cast<int64_t>(scanner.num_ill_formed()));
  append(about, static_cast<int64_t>(scanner.first_ill_formed()));
  append(about, scanner.failure() == nullptr ? "" : scanner.failure());
  append(about, static_cast<int64_t>(scanner.failed_at()));
  require(scanner.failed_at() <= num_bytes, "the text cannot be read behind its end");
  require(scanner.first_ill_formed() <= num_bytes, "a byte behind the end is not UTF-8");
  return about;
}

}  // namespace
}  // namespace collector::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collector::fuzz;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string whole = described(*scanned(text, size), size);
  require(described(*scanned(text, size_t{data[size - 1]} + 1), size) == whole, "pieces differ from the whole");
  return 0;
}

// Chrome traces in pieces of any size, whole, cut and hostile.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "read/chrome_scanner.h"

using namespace collector::read;

namespace {

std::unique_ptr<ChromeScanner> scanned(std::string_view text, size_t piece) {
  auto scanner = std::make_unique<ChromeScanner>();
  for (size_t at = 0; at < text.size(); at += piece) {
    if (!scanner->feed(text.substr(at, piece))) break;
  }
  scanner->finish();
  return scanner;
}

std::unique_ptr<ChromeScanner> scanned(std::string_view text) { return scanned(text, text.size() + 1); }

// All that a scanner knows of an event.
std::string described(const ChromeScanner& scanner, size_t row) {
  const ChromeEvent& event = scanner.events()[row];
  std::string about(1, event.phase);
  about += "|" + std::string(scanner.text(event.category)) + "|" + std::string(scanner.text(event.name)) + "|" +
           std::to_string(event.start_ns) + "|" + std::to_string(event.duration_ns) + "|" +
           scanner.tracks()[event.track].first + "|" + scanner.tracks()[event.track].second;
  const auto at = static_cast<int64_t>(row);
  for (const uint16_t argument : scanner.shapes()[event.shape]) {
    int64_t value = 0;
    const bool is_text = scanner.texts(argument).has(row);
    (is_text ? scanner.texts(argument) : scanner.numbers(argument)).gather(&at, 1, -1, &value);
    about += "|" + scanner.argument_names()[argument] + "=" +
             (is_text ? std::string(scanner.text(static_cast<uint32_t>(value))) : std::to_string(value));
  }
  return about;
}

std::vector<std::string> described(const ChromeScanner& scanner) {
  std::vector<std::string> all;
  for (size_t row = 0; row < scanner.events().size(); ++row) all.push_back(described(scanner, row));
  return all;
}

constexpr std::string_view kTrace = R"json({"schemaVersion": 1, "nested": {"a": [1, {"b": "]}\""}]}, "traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "void f<\"\u00e9\ud83d\ude00\ud800\u0000\">()", "pid": 0, "tid": "stream 7",
   "ts": 1700000000000000.125, "dur": 2.5, "args": {"grid": [1, 2, 3], "correlation": 4, "size": -5000000000}},
  {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}}, 7,
  {"name": "a", "name": "b", "ph": "X", "ts": "8", "ts": " 9 ", "args": {"x": 1}, "args": {"y": 1, "y": "z"}},
  {"ph": "X", "ts": NaN, "dur": 1e30, "args": null, "pid": null}
], "displayTimeUnit": "ns"} and more)json";

}  // namespace

TEST_CASE("what an event says comes back") {
  const auto scanner = scanned(kTrace);
  CHECK(described(*scanner) ==
        std::vector<std::string>{
            std::string("X|kernel|void f<\"\xC3\xA9\xF0\x9F\x98\x80?") + '\0' +
                "\">()|1700000000000000125|2500|0|\"stream 7\"|grid=[1, 2, 3]|correlation=4|size=-5000000000",
            "M||process_name|" + std::to_string(kNoTime) + "|" + std::to_string(kNoTime) + "|0||name=python",
            "X||b|9000|" + std::to_string(kNoTime) + "|||y=z",
            "X|||" + std::to_string(kImpossibleTime) + "|" + std::to_string(kImpossibleTime) + "|null|"});
  CHECK(scanner->num_entries() == 5);
  CHECK(scanner->num_not_objects() == 1);
  CHECK(scanner->is_closed());
  CHECK(scanner->failure() == nullptr);
  CHECK(scanner->members() ==
        std::vector<std::pair<std::string, std::string>>{
            {"schemaVersion", "1"}, {"nested", R"({"a": [1, {"b": "]}\""}]})"}, {"displayTimeUnit", "\"ns\""}});
}

TEST_CASE("pieces of any size give the same") {
  const auto whole = scanned(kTrace);
  for (size_t piece = 1; piece < 60; ++piece) {
    const auto scanner = scanned(kTrace, piece);
    CHECK(described(*scanner) == described(*whole));
    CHECK(scanner->members() == whole->members());
    CHECK(scanner->is_closed());
  }
}

TEST_CASE("a trace that is cut anywhere keeps the whole events before the cut") {
  const auto whole = described(*scanned(kTrace));
  for (size_t length = 0; length < kTrace.size(); ++length) {
    const auto scanner = scanned(kTrace.substr(0, length));
    const auto found = described(*scanner);
    REQUIRE(found.size() <= whole.size());
    CHECK(std::equal(found.begin(), found.end(), whole.begin()));
    if (scanner->failure() != nullptr) CHECK(scanner->failed_at() <= length);
    if (!scanner->has_events()) CHECK(scanner->failure() != nullptr);
  }
}

TEST_CASE("a list may lack its bracket, and an object may not") {
  for (const char* const text : {"[", "[{}", "[{},", "[{}]", "\xEF\xBB\xBF [{}, ] more"}) {
    CAPTURE(text);
    CHECK(scanned(text)->is_closed());
    CHECK(scanned(text)->failure() == nullptr);
  }
  for (const char* const text : {R"({"traceEvents":[)", R"({"traceEvents":[{}])", R"({"traceEvents":[{}], "a)"}) {
    CAPTURE(text);
    CHECK_FALSE(scanned(text)->is_closed());
    CHECK(scanned(text)->failure() == nullptr);
    CHECK(scanned(text)->has_events());
  }
}

TEST_CASE("text that is no JSON ends the trace where it begins") {
  for (const char* const entry :
       {"{\"a\"}", "{\"a\":01}", "{\"a\":tru }", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":1,}", "}",
        "{\"a\":[1,]}", "{\"a\":[1}}", ",", "{\"a\":--1}", "{'a':1}", "{\"a\":1"}) {
    CAPTURE(entry);
    const auto scanner = scanned(std::string("[{\"ph\":\"X\"}, ") + entry + ",{\"ph\":\"X\"}]");
    CHECK(scanner->events().size() == 1);
    CHECK(scanner->failure() != nullptr);
    CHECK(scanner->failed_at() == 13);
  }
}

TEST_CASE("values nest up to a limit") {
  const auto in_argument = [](const std::string& value) {
    return scanned("[{\"ph\":\"X\",\"args\":{\"a\":" + value + "}}]");
  };
  const auto lists = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  const auto objects = [](size_t depth) {
    std::string text = "0";
    for (size_t i = 0; i < depth; ++i) text = "{\"a\":" + text + "}";
    return text;
  };
  constexpr size_t kMost = JsonCursor::kMaxDepth - 3;  // the list of events, the event and its arguments are around it
  CHECK(in_argument(lists(kMost))->is_closed());
  CHECK(in_argument(objects(kMost))->is_closed());
  CHECK(std::string(in_argument(lists(kMost + 1))->failure()) == "nested too deeply");
  CHECK(std::string(in_argument(objects(kMost + 1))->failure()) == "nested too deeply");
  CHECK(std::string(scanned(std::string(1 << 20, '['))->failure()) == "nested too deeply");
  CHECK(std::string(scanned("{\"a\":" + std::string(1 << 20, '{'))->failure()) == "no JSON");
}

TEST_CASE("memory stays near what a hostile trace says") {
  std::string text = "[";
  for (int i = 0; i < 70'000; ++i) {
    const std::string name = std::to_string(i);
    text += R"({"ph":"X","pid":)" + name + R"(,"args":{")" + name + R"(":1}},)";
  }
  const auto scanner = scanned(text, 4096);
  CHECK(scanner->events().size() == 70'000);
  CHECK(scanner->argument_names().size() == ChromeScanner::kMaxArguments);
  CHECK(scanner->num_arguments_left_out() == 70'000 - ChromeScanner::kMaxArguments);
}

TEST_CASE("an event that is read again counts the arguments that are left out once") {
  std::string text = R"([{"ph":"X","args":{)";
  for (size_t i = 0; i < ChromeScanner::kMaxArguments + 5; ++i) text += '"' + std::to_string(i) + "\":1,";
  text.back() = '}';
  text += "}]";
  for (const size_t piece : {size_t{1}, size_t{64}, text.size()}) {
    CHECK(scanned(text, piece)->num_arguments_left_out() == 5);
  }
}

TEST_CASE("arguments that are no numbers of JSON are counted once, and kept as they are written") {
  const std::string text = R"([{"ph":"X","args":{"a":NaN,"b":-Infinity,"c":1}},{"ph":"X","args":{"a":Infinity}}])";
  for (const size_t piece : {size_t{1}, size_t{7}, text.size()}) {
    const auto scanner = scanned(text, piece);
    CHECK(scanner->num_not_finite() == 3);
    CHECK(scanner->texts(0).has(0));
    CHECK(scanner->numbers(2).has(0));
  }
}

TEST_CASE("whole numbers of any length are read, in pieces of any size") {
  const std::string text =
      R"([{"ph":"X","args":{"a":-7,"b":0,"c":123456789012345678,"d":9223372036854775807,"e":9223372036854775808,"f":-0}}])";
  for (const size_t piece : {size_t{1}, size_t{7}, text.size()}) {
    const auto scanner = scanned(text, piece);
    const auto number = [&](size_t argument) {
      const int64_t row = 0;
      int64_t value = 0;
      scanner->numbers(argument).gather(&row, 1, -1, &value);
      return value;
    };
    CHECK(number(0) == -7);
    CHECK(number(1) == 0);
    CHECK(number(2) == 123456789012345678);
    CHECK(number(3) == INT64_MAX);
    CHECK(!scanner->numbers(4).has(0));
    CHECK(number(5) == 0);
  }
  CHECK(scanned(R"([{"ph":"X","args":{"a":01}}])")->failure() != nullptr);
}

TEST_CASE("a column has the numbers on both sides of 32 bits") {
  const std::vector<int64_t> numbers = {0, 4294967295, 4294967296, -1, INT64_MAX, -INT64_MAX};
  for (size_t most = 1; most <= numbers.size(); ++most) {  // a column is widened by one of them
    std::string text = "[";
    for (size_t i = 0; i < most; ++i) text += R"({"ph":"X","args":{"a":)" + std::to_string(numbers[i]) + "}},";
    const auto scanner = scanned(text);
    for (size_t i = 0; i < most; ++i) {
      const auto row = static_cast<int64_t>(i);
      int64_t value = 7;
      scanner->numbers(0).gather(&row, 1, 8, &value);
      CHECK(value == numbers[i]);
    }
  }
}

TEST_CASE("a low surrogate stands for a character only behind a high one") {
  const auto scanner = scanned(R"([{"ph":"X","name":"\u0041\udc00","cat":"\udc00\ud800\u0041\ud83d\ude00"}])");
  CHECK(scanner->text(scanner->events()[0].name) == "A?");
  CHECK(scanner->text(scanner->events()[0].category) == "??A\U0001F600");
}

TEST_CASE("bytes that are not UTF-8 are counted once, where they are") {
  const std::string text = "[{\"ph\":\"X\",\"name\":\"a\xFF\xFE\",\"cat\":\"\xC3\xA9\"}]";
  for (const size_t piece : {size_t{1}, size_t{7}, text.size()}) {
    const auto scanner = scanned(text, piece);
    CHECK(scanner->num_ill_formed() == 2);
    CHECK(scanner->first_ill_formed() == 20);
  }
}

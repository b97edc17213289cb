// Strings by number: each text is stored once, and rows hold its number. The empty text is number 0.
//
// A session that removes its rows forgets their texts, too. Numbers go on: a text that comes again has another one
// then.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace collector::store {

// Not thread-safe: it belongs to the decode thread.
class StringTable {
 public:
  StringTable() : texts_(1) {}

  uint32_t intern(std::string_view text);

  // The same for a C string at an address that probably recurs, as the addresses of kernel names do. The address alone
  // is no proof: after a module is reloaded it may hold another name (observed before 13.4 U1). A hit in the cache is
  // therefore confirmed by comparing the text once per buffer; within one buffer, an address has only one meaning.
  uint32_t intern_address(const char* text) {
    const CacheLine& line = cache_[line_of(text)];
    return line.address == text && line.buffer == buffer_ ? line.id : confirm_address(text);
  }

  // From here on, addresses may hold other texts.
  void next_buffer() { ++buffer_; }

  // The texts from number first() on.
  const std::deque<std::string>& texts() const { return texts_; }
  uint32_t first() const { return first_; }
  const std::string& operator[](uint32_t number) const { return texts_[number == 0 ? 0 : number - first_]; }
  // The memory that the texts take, roughly.
  size_t num_bytes() const { return num_bytes_; }

  // Removes all texts, whose numbers no row has any more; later ones have higher numbers. Has no effect once the
  // numbers run out.
  void forget();
  // Removes all texts; numbers begin at 0.
  void clear() noexcept;

 private:
  struct CacheLine {
    const char* address = nullptr;
    const char* text = nullptr;  // our copy
    uint32_t id = 0;
    uint32_t buffer = 0;  // the buffer in which the text was last compared
  };
  static constexpr size_t kCacheLines = 4096;

  static size_t line_of(const char* text) {
    const auto address = reinterpret_cast<uintptr_t>(text);
    return (address >> 3 ^ address >> 15) % kCacheLines;
  }

  // The highest numbers are kept for the texts of one part of a session.
  static constexpr uint32_t kMostForgotten = UINT32_MAX - (uint32_t{1} << 24);

  uint32_t confirm_address(const char* text);

  std::deque<std::string> texts_;  // a deque never moves its strings: the map's keys and the cache point into it
  std::unordered_map<std::string_view, uint32_t> ids_;
  std::vector<CacheLine> cache_ = std::vector<CacheLine>(kCacheLines);
  uint32_t buffer_ = 1;
  uint32_t first_ = 0;
  size_t num_bytes_ = 0;
};

}  // namespace collector::store

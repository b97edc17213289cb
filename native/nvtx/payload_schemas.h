// Structured payloads of NVTX ranges as texts: "Name: jit_step, Unique ID: 7".
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvtx/domains.h"
#include "nvtx/payload_abi.h"
#include "threads/mutex.h"

namespace collector::nvtx {

// The schemas and enums that programs have registered. Thread-safe.
//
// Read are schemas with fixed places: numbers, addresses, arrays of a fixed number of numbers, texts, registered
// strings, enums, and schemas inside schemas. Entries of other types (unions, arrays of a length that the payload
// states, wide texts, floating-point numbers of 16 or 128 bits) are left out.
class PayloadSchemas {
 public:
  // Numbers of schemas and enums, and of their entries and values, all together. After the first one beyond them none
  // is kept.
  static constexpr size_t kMostSchemas = 4096;
  static constexpr size_t kMostEntries = size_t{1} << 18;
  // Return the number by which payloads name the schema or enum; 0: it was not kept.
  uint64_t add_schema(const Domain& domain, const SchemaAttributes* attributes);
  uint64_t add_enum(const Domain& domain, const EnumAttributes* attributes);

  // Appends the text of a payload, or its beginning if the whole text becomes longer than kLongestRead. Reads no
  // further than the size of the payload, and registered strings only if they are of `known`. Returns whether the text
  // is all that is read of payloads: false, if a schema or enum is unknown and some were not kept.
  bool append_text(const Domain& domain, const PayloadData& data, Domains& known, std::string& to);

  // For forks.
  threads::Mutex& mutex() { return mutex_; }

 private:
  struct Entry {
    uint64_t flags;
    uint64_t type;
    std::string name;
    uint64_t length;
    uint64_t offset;
  };
  struct Schema {
    uint64_t type = kStaticSchema;
    std::vector<Entry> entries;
    size_t size = 0;
    size_t alignment = 1;
    std::vector<std::pair<uint64_t, std::string>> values;  // of an enum
  };
  struct Layout {
    size_t size = 0;  // 0: values of the type are not read
    size_t alignment = 1;
  };
  struct Part {
    const Schema& schema;
    const unsigned char* data;
    size_t size;
  };

  // Whether a schema or enum with so many entries can be kept.
  bool take_room(size_t num_entries) REQUIRES(mutex_);
  uint64_t keep(const Domain& domain, uint64_t wanted_id, Schema schema) REQUIRES(mutex_);
  const Schema* find(const Domain& domain, uint64_t id) REQUIRES(mutex_);
  Layout layout_of(const Domain& domain, const Entry& entry) REQUIRES(mutex_);
  void append_part(const Domain& domain, const Part& part, Domains& known, int depth, std::string& to) REQUIRES(mutex_);
  bool append_value(const Domain& domain, const Entry& entry, const unsigned char* at, size_t size, Domains& known,
                    int depth, std::string& to) REQUIRES(mutex_);

  threads::Mutex mutex_;
  std::deque<Schema> schemas_ GUARDED_BY(mutex_);
  size_t num_entries_ GUARDED_BY(mutex_) = 0;
  bool is_full_ GUARDED_BY(mutex_) = false;       // whether one was not kept
  bool lacks_schema_ GUARDED_BY(mutex_) = false;  // whether the payload that is being read has, perhaps, one of these
  std::map<std::pair<capture::Owner, uint64_t>, const Schema*> by_id_ GUARDED_BY(mutex_);
};

}  // namespace collector::nvtx

#include <algorithm>
#include <set>
#include <unordered_map>

#include "checks.h"
#include "stepstats/wire.h"

namespace collector::fuzz {
namespace {

using stepstats::kBytes;
using stepstats::kVarint;
using stepstats::make_tag;
using stepstats::WireReader;

// Calls visit(tag, reader) for each field, which reads the value or returns false.
template <typename Visit>
void for_each_field(std::string_view message, Visit visit) {
  WireReader reader(message, message);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (!visit(tag, reader)) reader.skip(tag);
  }
}

class PerfettoReader {
 public:
  void read_packet(std::string_view packet) {
    bool cleared = false;
    int64_t time_ns = -1;
    std::string_view event, interned;
    for_each_field(packet, [&](uint32_t tag, WireReader& reader) {
      switch (tag) {
        case make_tag(8, kVarint):
          time_ns = reader.read_int64();
          return true;
        case make_tag(11, kBytes):
          event = reader.read_bytes();
          return true;
        case make_tag(12, kBytes):
          interned = reader.read_bytes();
          return true;
        case make_tag(13, kVarint):
          cleared = (reader.read_varint() & 1) != 0;
          return true;
        case make_tag(60, kBytes):
          read_track(reader.read_bytes());
          return true;
        default:
          return false;
      }
    });
    require(cleared || !first_, "a first packet that does not clear the incremental state");
    first_ = false;
    if (cleared) interned_.clear();
    for_each_field(interned, [&](uint32_t tag, WireReader& reader) {
      read_interned(tag >> 3, reader.read_bytes());
      return true;
    });
    if (event.data() != nullptr) read_event(event, time_ns);
  }

  uint64_t finish() const {
    for (const auto& [uuid, track] : tracks_) require(track.open == 0, "a slice that never ends");
    return slices_;
  }

 private:
  struct TrackState {
    uint64_t open = 0;
    int64_t last_ns = 0;
  };
  enum EventType : uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

  void read_interned(uint32_t kind, std::string_view entry) {
    uint64_t number = 0;
    for_each_field(entry, [&](uint32_t tag, WireReader& reader) {
      if (tag == make_tag(1, kVarint)) {
        number = reader.read_varint();
      } else {
        require(tag == make_tag(2, kBytes) && is_utf8(reader.read_bytes()), "an interned text that is not UTF-8");
      }
      return true;
    });
    require(interned_.insert({kind, number}).second, "a number interned twice");
  }

  void read_track(std::string_view descriptor) {
    uint64_t uuid = 0;
    uint64_t parent = 0;
    for_each_field(descriptor, [&](uint32_t tag, WireReader& reader) {
      if (tag == make_tag(1, kVarint)) {
        uuid = reader.read_varint();
      } else if (tag == make_tag(5, kVarint)) {
        parent = reader.read_varint();
      } else if (tag == make_tag(2, kBytes)) {
        require(is_utf8(reader.read_bytes()), "a track's name that is not UTF-8");
      } else if (tag == make_tag(3, kBytes) || tag == make_tag(4, kBytes)) {
        for_each_field(reader.read_bytes(), [&](uint32_t inner, WireReader& fields) {
          if ((inner & 7) != kBytes) return false;
          require(is_utf8(fields.read_bytes()), "a process or thread whose name is not UTF-8");
          return true;
        });
      } else {
        return false;
      }
      return true;
    });
    require(parent == 0 || tracks_.count(parent) == 1, "a track before the process that it belongs to");
    require(tracks_.try_emplace(uuid).second, "a track described twice");
  }

  void read_event(std::string_view event, int64_t time_ns) {
    uint64_t type = 0;
    uint64_t uuid = 0;
    for_each_field(event, [&](uint32_t tag, WireReader& reader) {
      switch (tag) {
        case make_tag(9, kVarint):
          type = reader.read_varint();
          return true;
        case make_tag(11, kVarint):
          uuid = reader.read_varint();
          return true;
        case make_tag(3, kVarint):
          return require_interned(1, reader);
        case make_tag(10, kVarint):
          return require_interned(2, reader);
        case make_tag(4, kBytes):
          for_each_field(reader.read_bytes(), [&](uint32_t inner, WireReader& fields) {
            if (inner == make_tag(1, kVarint)) return require_interned(3, fields);
            return inner == make_tag(17, kVarint) && require_interned(29, fields);
          });
          return true;
        default:
          return false;
      }
    });
    require(time_ns >= 0, "an event without a time");
    const auto found = tracks_.find(uuid);
    require(found != tracks_.end(), "an event on a track that was not described");
    TrackState& track = found->second;
    if (type == kInstant) return;
    require(time_ns >= track.last_ns, "an event before the one before it on its track");
    track.last_ns = time_ns;
    if (type == kBegin) {
      ++track.open;
      ++slices_;
    } else if (type == kEnd) {
      require(track.open > 0, "an end without a beginning");
      --track.open;
    } else {
      require(type == kCounter, "an event of an unknown type");
    }
  }

  bool require_interned(uint32_t kind, WireReader& reader) const {
    require(interned_.count({kind, reader.read_varint()}) == 1, "a number that means no interned text");
    return true;
  }

  bool first_ = true;
  std::set<std::pair<uint32_t, uint64_t>> interned_;
  std::unordered_map<uint64_t, TrackState> tracks_;
  uint64_t slices_ = 0;
};

}  // namespace

uint64_t check_perfetto(std::string_view file, const std::vector<size_t>& piece_ends) {
  PerfettoReader trace;
  std::vector<size_t> packet_ends;
  try {
    WireReader reader(file, file);
    while (!reader.at_end()) {
      require(reader.read_tag() == make_tag(1, kBytes), "something else than packets in a Perfetto trace");
      const std::string_view packet = reader.read_bytes();
      packet_ends.push_back(static_cast<size_t>(packet.data() + packet.size() - file.data()));
      trace.read_packet(packet);
    }
  } catch (const stepstats::WireError& error) {
    require(false, error.what());
  }
  for (const size_t end : piece_ends) {
    require(std::binary_search(packet_ends.begin(), packet_ends.end(), end), "a piece of the file within a packet");
  }
  return trace.finish();
}

}  // namespace collector::fuzz

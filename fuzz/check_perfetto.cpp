#include <algorithm>
#include <set>
#include <unordered_map>

#include "checks.h"
#include "stepstats/wire.h"

namespace collector::fuzz {
namespace {

using convert::kBytes;
using convert::kVarint;
using convert::Tag;
using convert::WireReader;

// Calls visit(tag, reader) for each field; it reads the value or returns false.
template <typename Visit>
void ForEachField(std::string_view message, Visit visit) {
  WireReader reader(message, message);
  while (!reader.AtEnd()) {
    const uint32_t tag = reader.ReadTag();
    if (!visit(tag, reader)) reader.Skip(tag);
  }
}

class PerfettoReader {
 public:
  void ReadPacket(std::string_view packet) {
    bool cleared = false;
    int64_t time_ns = -1;
    std::string_view event, interned;
    ForEachField(packet, [&](uint32_t tag, WireReader& reader) {
      switch (tag) {
        case Tag(8, kVarint):
          time_ns = reader.ReadInt64();
          return true;
        case Tag(11, kBytes):
          event = reader.ReadBytes();
          return true;
        case Tag(12, kBytes):
          interned = reader.ReadBytes();
          return true;
        case Tag(13, kVarint):
          cleared = (reader.ReadVarint() & 1) != 0;
          return true;
        case Tag(60, kBytes):
          ReadTrack(reader.ReadBytes());
          return true;
        default:
          return false;
      }
    });
    Require(cleared || !first_, "a first packet that does not clear the incremental state");
    first_ = false;
    if (cleared) interned_.clear();
    ForEachField(interned, [&](uint32_t tag, WireReader& reader) {
      ReadInterned(tag >> 3, reader.ReadBytes());
      return true;
    });
    if (event.data() != nullptr) ReadEvent(event, time_ns);
  }

  uint64_t Finish() const {
    for (const auto& [uuid, track] : tracks_) Require(track.open == 0, "a slice that never ends");
    return slices_;
  }

 private:
  struct TrackState {
    uint64_t open = 0;
    int64_t last_ns = 0;
  };
  enum EventType : uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

  void ReadInterned(uint32_t kind, std::string_view entry) {
    uint64_t number = 0;
    ForEachField(entry, [&](uint32_t tag, WireReader& reader) {
      if (tag == Tag(1, kVarint)) {
        number = reader.ReadVarint();
      } else {
        Require(tag == Tag(2, kBytes) && IsUtf8(reader.ReadBytes()), "an interned text that is not UTF-8");
      }
      return true;
    });
    Require(interned_.insert({kind, number}).second, "a number interned twice");
  }

  void ReadTrack(std::string_view descriptor) {
    uint64_t uuid = 0;
    uint64_t parent = 0;
    ForEachField(descriptor, [&](uint32_t tag, WireReader& reader) {
      if (tag == Tag(1, kVarint)) {
        uuid = reader.ReadVarint();
      } else if (tag == Tag(5, kVarint)) {
        parent = reader.ReadVarint();
      } else if (tag == Tag(2, kBytes)) {
        Require(IsUtf8(reader.ReadBytes()), "a track's name that is not UTF-8");
      } else if (tag == Tag(3, kBytes) || tag == Tag(4, kBytes)) {
        ForEachField(reader.ReadBytes(), [&](uint32_t inner, WireReader& fields) {
          if ((inner & 7) != kBytes) return false;
          Require(IsUtf8(fields.ReadBytes()), "a process or thread whose name is not UTF-8");
          return true;
        });
      } else {
        return false;
      }
      return true;
    });
    Require(parent == 0 || tracks_.count(parent) == 1, "a track before the process that it belongs to");
    Require(tracks_.try_emplace(uuid).second, "a track described twice");
  }

  void ReadEvent(std::string_view event, int64_t time_ns) {
    uint64_t type = 0;
    uint64_t uuid = 0;
    ForEachField(event, [&](uint32_t tag, WireReader& reader) {
      switch (tag) {
        case Tag(9, kVarint):
          type = reader.ReadVarint();
          return true;
        case Tag(11, kVarint):
          uuid = reader.ReadVarint();
          return true;
        case Tag(3, kVarint):
          return RequireInterned(1, reader);
        case Tag(10, kVarint):
          return RequireInterned(2, reader);
        case Tag(4, kBytes):
          ForEachField(reader.ReadBytes(), [&](uint32_t inner, WireReader& fields) {
            if (inner == Tag(1, kVarint)) return RequireInterned(3, fields);
            return inner == Tag(17, kVarint) && RequireInterned(29, fields);
          });
          return true;
        default:
          return false;
      }
    });
    Require(time_ns >= 0, "an event without a time");
    const auto found = tracks_.find(uuid);
    Require(found != tracks_.end(), "an event on a track that was not described");
    TrackState& track = found->second;
    if (type == kInstant) return;
    Require(time_ns >= track.last_ns, "an event before the one before it on its track");
    track.last_ns = time_ns;
    if (type == kBegin) {
      ++track.open;
      ++slices_;
    } else if (type == kEnd) {
      Require(track.open > 0, "an end without a beginning");
      --track.open;
    } else {
      Require(type == kCounter, "an event of an unknown type");
    }
  }

  bool RequireInterned(uint32_t kind, WireReader& reader) const {
    Require(interned_.count({kind, reader.ReadVarint()}) == 1, "a number that means no interned text");
    return true;
  }

  bool first_ = true;
  std::set<std::pair<uint32_t, uint64_t>> interned_;
  std::unordered_map<uint64_t, TrackState> tracks_;
  uint64_t slices_ = 0;
};

}  // namespace

uint64_t CheckPerfetto(std::string_view file, const std::vector<size_t>& piece_ends) {
  PerfettoReader trace;
  std::vector<size_t> packet_ends;
  try {
    WireReader reader(file, file);
    while (!reader.AtEnd()) {
      Require(reader.ReadTag() == Tag(1, kBytes), "something else than packets in a Perfetto trace");
      const std::string_view packet = reader.ReadBytes();
      packet_ends.push_back(static_cast<size_t>(packet.data() + packet.size() - file.data()));
      trace.ReadPacket(packet);
    }
  } catch (const convert::WireError& error) {
    Require(false, error.what());
  }
  for (const size_t end : piece_ends) {
    Require(std::binary_search(packet_ends.begin(), packet_ends.end(), end), "a piece of the file within a packet");
  }
  return trace.Finish();
}

}  // namespace collector::fuzz

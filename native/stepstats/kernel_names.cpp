#include "stepstats/kernel_names.h"

#include "stepstats/wire.h"
#include "store/demangled_name.h"

namespace collector::stepstats {

void KernelNames::add_capture(std::string_view capture, std::string_view whole) {
  constexpr uint32_t kStrings = 4;
  WireReader reader(capture, whole);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if (tag == make_tag(kStrings, kBytes)) {
      names_.push_back({reader.read_bytes()});
    } else {
      reader.skip(tag);
    }
  }
}

std::string_view KernelNames::whole_name(int64_t name_id) {
  if (name_id < 0 || static_cast<uint64_t>(name_id) >= names_.size()) return {};
  Name& name = names_[static_cast<size_t>(name_id)];
  if (!name.is_demangled && name.given.substr(0, 2) == "_Z") {
    name.whole = demangled_.emplace_back(store::demangled_name(std::string(name.given)));
  }
  name.is_demangled = true;
  return name.whole;
}

}  // namespace collector::stepstats

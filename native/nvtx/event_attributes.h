// What a program states of a range or mark, in NVTX's event attributes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "capture/range_texts.h"
#include "nvtx/abi.h"
#include "nvtx/domains.h"
#include "nvtx/payload_schemas.h"
#include "nvtx/texts.h"

namespace collector::nvtx {

// The name of a range or mark that has none.
inline constexpr std::string_view kNoName = "(no name)";

// The attributes that a program gave, with zero for those beyond its `size`.
EventAttributes given(const EventAttributes* attributes) noexcept;

// The registered string that is the message; null: there is none.
inline const RegisteredString* registered_in(const EventAttributes& attributes) {
  return attributes.message_type == MessageType::kRegistered
             ? static_cast<const RegisteredString*>(attributes.message.registered)
             : nullptr;
}

// The name in the message. A wide one is valid until this thread reads the next one.
inline std::string_view name_in(const EventAttributes& attributes) {
  switch (attributes.message_type) {
    case MessageType::kAscii:
      return name_in(attributes.message.ascii);
    case MessageType::kUnicode:
      return name_in(attributes.message.unicode);
    case MessageType::kRegistered: {
      const RegisteredString* const string = registered_in(attributes);
      return string == nullptr ? std::string_view() : std::string_view(string->name);
    }
    default:
      return {};
  }
}

// The texts of a range or mark, which are valid as long as this and the attributes are. Nothing is allocated. What most
// ranges state is read in place, because programs push one for each op.
class StatedTexts {
 public:
  // `name`: that of the attributes, or of a message without any.
  StatedTexts(const Domain& domain, const EventAttributes& attributes, std::string_view name, Domains& domains,
              PayloadSchemas& schemas) {
    constexpr int32_t kArgb = 1;
    const RegisteredString* const string = registered_in(attributes);
    texts_.name = name.empty() ? kNoName : name;
    texts_.domain = domain.name;
    texts_.is_shared = domain.is_shared || (string != nullptr && string->is_shared);
    if (attributes.category != 0) texts_.category = category_in(domain, attributes.category, domains);
    if (attributes.payload_type != 0 || (string != nullptr && !string->title.empty())) {
      texts_.payload = payload_in(domain, attributes, domains, schemas);
    }
    texts_.color = attributes.color_type == kArgb ? attributes.color : 0;
  }
  StatedTexts(const StatedTexts&) = delete;
  StatedTexts& operator=(const StatedTexts&) = delete;

  const capture::RangeTexts& texts() const { return texts_; }

 private:
  // The name of a category, or its number.
  std::string_view category_in(const Domain& domain, uint32_t category, Domains& domains);
  std::string_view payload_in(const Domain& domain, const EventAttributes& attributes, Domains& domains,
                              PayloadSchemas& schemas);

  // For numbers.
  std::array<char, 32> category_;
  std::array<char, 32> payload_;
  capture::RangeTexts texts_;
};

}  // namespace collector::nvtx

// The names of API functions, which CUPTI identifies by numbers.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "cupti/library.h"
#include "store/store.h"

namespace collector::capture {

// The name_id of each (domain, callback id) in the rows. A function without a name is named by its number.
using ApiCallNames = std::map<std::pair<uint8_t, uint32_t>, uint32_t>;

ApiCallNames intern_api_call_names(const cupti::Library& library, const store::Chunks<store::ApiCallRow>& rows,
                                   store::StringTable& strings);

}  // namespace collector::capture

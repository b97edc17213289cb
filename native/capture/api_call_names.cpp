#include "capture/api_call_names.h"

#include <string>

namespace collector::capture {

ApiCallNames intern_api_call_names(const cupti::Library& library, const store::Chunks<store::ApiCallRow>& rows,
                                   store::StringTable& strings) {
  ApiCallNames names;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto [entry, is_new] = names.try_emplace({rows[i].domain, rows[i].callback_id}, 0);
    if (!is_new) continue;
    std::string name = library.callback_name(static_cast<cupti::CallbackDomain>(rows[i].domain), rows[i].callback_id);
    if (name.empty()) name = "callback " + std::to_string(rows[i].callback_id);
    entry->second = strings.intern(name);
  }
  return names;
}

}  // namespace collector::capture

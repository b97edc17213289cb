#include "nvtx/domains.h"

#include <algorithm>
#include <utility>

#include "capture/annotations.h"
#include "nvtx/texts.h"

namespace collector::nvtx {
namespace {

// XLA's ranges are in this domain. Their texts are titles.
constexpr std::string_view kXlaDomain = "TSL";

}  // namespace

Domain& Domains::add(std::string_view name) {
  const threads::MutexLock lock(mutex_);
  if (const auto known = by_name_.find(name); known != by_name_.end()) return *known->second;
  if (domains_.size() == kMostDomains) return domains_.back();
  Domain& domain = domains_.emplace_back();
  domain.owner = static_cast<capture::Owner>(domains_.size());  // 0 is the program's
  domain.is_shared = domains_.size() == kMostDomains;
  domain.name = domain.is_shared ? capture::AnnotationLog::kManyNames : name;
  domain.is_wanted = is_selected(domain.name);
  by_name_.emplace(domain.name, &domain);
  return domain;
}

Domain& Domains::create(std::string_view name) {
  Domain& domain = add(name);
  const threads::MutexLock lock(mutex_);
  ++domain.times_made;
  return domain;
}

void* Domains::destroy(Domain& domain) {
  const threads::MutexLock lock(mutex_);
  if (domain.times_made == 0 || --domain.times_made > 0) return nullptr;
  return domain.next.exchange(nullptr);
}

void* Domains::keep_next(Domain& domain, void* handle) {
  void* none = nullptr;
  return domain.next.compare_exchange_strong(none, handle) ? nullptr : handle;
}

RegisteredString& Domains::register_string(const Domain& domain, std::string_view text) {
  const threads::MutexLock lock(mutex_);
  if (const auto known = by_text_.find({domain.owner, text}); known != by_text_.end()) return *known->second;
  if (!strings_.empty() && strings_.back().is_shared) return strings_.back();
  num_string_bytes_ += text.size();
  RegisteredString& string = strings_.emplace_back();
  const std::string_view name = domain.name == kXlaDomain ? name_in_title(text) : text;
  string.is_shared = strings_.size() == kMostStrings || num_string_bytes_ > kMostStringBytes;
  string.name = string.is_shared ? capture::AnnotationLog::kManyNames : name;
  if (string.name != text && !string.is_shared) string.title = text;
  by_text_.emplace(Text(domain.owner, string.title.empty() ? string.name : string.title), &string);
  handles_.insert(&string);
  return string;
}

std::string_view Domains::text_of(const void* handle) {
  const threads::MutexLock lock(mutex_);
  if (handles_.count(handle) == 0) return {};
  const auto& string = *static_cast<const RegisteredString*>(handle);
  return string.title.empty() ? string.name : string.title;
}

bool Domains::is_selected(const std::string& name) const {
  const std::vector<std::string>& domains = selection_.domains;
  return selection_.all || std::find(domains.begin(), domains.end(), name) != domains.end();
}

capture::RangeSelection Domains::select(capture::RangeSelection selection) {
  for (std::string& name : selection.domains) name = std::string(name_in(name));
  const threads::MutexLock lock(mutex_);
  std::swap(selection_, selection);
  for (Domain& domain : domains_) domain.is_wanted.store(is_selected(domain.name), std::memory_order_relaxed);
  return selection;
}

std::vector<std::string> Domains::names() {
  const threads::MutexLock lock(mutex_);
  std::vector<std::string> names;
  names.reserve(domains_.size());
  for (const Domain& domain : domains_) names.push_back(domain.name);
  return names;
}

std::vector<std::string> Domains::absent(const std::vector<std::string>& wanted) {
  const threads::MutexLock lock(mutex_);
  std::vector<std::string> names;
  if (domains_.size() < 2) return names;
  for (const std::string& name : wanted) {
    const bool is_known = name.empty() || by_name_.count(name_in(name)) != 0;
    if (!is_known && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

void Domains::name_category(Domain& domain, uint32_t category, std::string_view name) {
  const threads::MutexLock lock(mutex_);
  const std::pair key(domain.owner, category);
  auto text = category_names_.find(name);
  if (text == category_names_.end() && category_names_.size() < kMostCategories) {
    text = category_names_.emplace(name).first;
  }
  const bool has_room = categories_.size() < kMostCategories || categories_.count(key) != 0;
  const std::string* const kept = text == category_names_.end() || !has_room ? nullptr : &*text;
  if (kept == nullptr) {
    have_dropped_categories_.store(true, std::memory_order_relaxed);
    categories_.erase(key);  // its name before is not its name any more
  } else {
    categories_[key] = kept;
  }
  if (category < kSmallCategories) domain.small_categories[category].store(kept, std::memory_order_release);
}

const std::string* Domains::category(const Domain& domain, uint32_t category) {
  if (category < kSmallCategories) return domain.small_categories[category].load(std::memory_order_acquire);
  const threads::MutexLock lock(mutex_);
  const auto named = categories_.find({domain.owner, category});
  return named == categories_.end() ? nullptr : named->second;
}

}  // namespace collector::nvtx

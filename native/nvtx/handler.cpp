#include "nvtx/handler.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <mutex>
#include <type_traits>
#include <utility>

#include "capture/capture_ranges.h"
#include "capture/session.h"
#include "cupti/process_use.h"
#include "nvtx/domains.h"
#include "nvtx/event_attributes.h"
#include "nvtx/next_tool.h"
#include "nvtx/payload_schemas.h"
#include "nvtx/texts.h"
#include "nvtx/thread_names.h"
#include "threads/fork_locks.h"
#include "threads/mutex.h"
#include "threads/not_cancelled.h"

namespace collector::nvtx {
namespace {

using capture::Session;

// The process's one handler. Never destroyed: programs call it until they end.
struct Handler {
  Session& session = Session::instance();
  capture::Annotator& annotator = session.annotator();
  Domains domains;
  PayloadSchemas schemas;
  CudaNames cuda_names;
  ThreadNames thread_names;
  NextTool next;
  NextRanges next_ranges;
  RegisteredString no_string{std::string(kNoName), {}, {}};  // that of inert children
  std::atomic<bool> is_inert{false};                         // whether this is a child that found a lock held
  std::atomic<uint64_t> failures{0};
  std::atomic<uint64_t> names_version{0};  // of the names of threads and of CUDA's objects
  threads::Mutex mutex;
  std::vector<std::string> libraries GUARDED_BY(mutex);
};

// Created when the library is loaded, so that a call needs no check.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): without memory for it no program begins
Handler* const kHandler = new Handler();
Handler& handler() { return *kHandler; }

// Whether this is a forked child that records nothing and must take no lock: a thread that the child does not have may
// hold it. A child that was forked before CUDA was used records as any process does.
bool is_inert() noexcept { return cupti::out_of_use() || handler().is_inert.load(std::memory_order_relaxed); }

using HandlerLocks = threads::ForkLocks<8>;

HandlerLocks& fork_locks() {
  static auto* const locks = [] {
    const auto [changing, ranges] = capture::CaptureRanges::instance().mutexes();
    Handler& self = handler();
    // A payload is read with the schemas locked, and its strings are looked up among the domains.
    return new HandlerLocks({changing, ranges, &self.mutex, &self.thread_names.mutex(), &self.next_ranges.mutex(),
                             &self.cuda_names.mutex(), &self.schemas.mutex(), &self.domains.mutex()});
  }();
  return *locks;
}

capture::RangeSelection select_ranges(capture::RangeSelection selection) {
  return is_inert() ? selection : handler().domains.select(std::move(selection));
}

// Registered when the library is loaded, before any of the locks can be held, and before a session or a copy of NVTX.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): without memory for it no program begins
[[maybe_unused]] const int kRegistered = [] {
  fork_locks();
  handler().session.set_select_ranges(select_ranges);
  return ::pthread_atfork([] { fork_locks().take(); }, [] { fork_locks().release(); },
                          [] {
                            if (!fork_locks().release()) handler().is_inert.store(true, std::memory_order_relaxed);
                          });
}();

// Runs `record`; nothing that it throws may reach the program.
template <typename Record>
auto guarded(const Record& record) noexcept -> decltype(record()) {
  try {
    return record();
  } catch (...) {
    handler().failures.fetch_add(1, std::memory_order_relaxed);
    return decltype(record())();
  }
}

OpText wide_op(const wchar_t* text) {
  OpText op;
  op.name = name_in(text);
  return op;
}

// The attributes for the next tool, which has handles of its own. Structured payloads contain handles of ours, and the
// next tool knows no schema: it does not get them.
EventAttributes for_next(const EventAttributes* attributes) {
  EventAttributes copy = given(attributes);
  if (copy.message_type == MessageType::kRegistered && copy.message.registered != nullptr) {
    copy.message.registered = static_cast<RegisteredString*>(copy.message.registered)->next.load();
    if (copy.message.registered == nullptr) copy.message_type = MessageType::kNone;
  }
  if (copy.payload_type == kExtendedPayload) copy.payload_type = copy.reserved = 0;
  return copy;
}
void* for_next(void* domain) { return domain == nullptr ? nullptr : handler().domains.of(domain).next.load(); }

// --- Ranges that are pushed and popped -------------------------------------------------------------------------------

bool is_recorded(const Domain& domain) {
  return domain.is_wanted.load(std::memory_order_relaxed) && handler().session.follows_ranges() && !is_inert();
}

int push_ex(Domain& domain, const EventAttributes* attributes) noexcept {
  if (!is_recorded(domain)) return kNoPushPopTracking;
  return guarded([&] {
    const auto push = [&domain](const EventAttributes& said) {
      Handler& self = handler();
      const StatedTexts stated(domain, said, name_in(said), self.domains, self.schemas);
      return self.annotator.push_range(domain.owner, stated.texts());
    };
    // Those of today's versions are read in place.
    const bool is_whole = attributes != nullptr && attributes->size >= sizeof(EventAttributes);
    return is_whole ? push(*attributes) : push(given(attributes));
  });
}

template <typename Text>
int push_text(const Text* message, OpText (*read)(const Text*)) noexcept {
  const Domain& domain = handler().domains.default_domain();
  if (!is_recorded(domain)) return kNoPushPopTracking;
  return guarded([&] {
    capture::RangeTexts texts;
    const OpText op = read(message);
    texts.name = op.name.empty() ? kNoName : op.name;
    texts.op_sequence = op.sequence;
    texts.shapes = op.shapes;
    return handler().annotator.push_range(domain.owner, texts);
  });
}

int pop(Domain& domain) noexcept {
  if (!domain.is_wanted.load(std::memory_order_relaxed)) return kNoPushPopTracking;
  return guarded([&] { return handler().annotator.pop_range(domain.owner); });
}

// --- Marks, and ranges that begin in one place and end in another ----------------------------------------------------

template <typename NameOf>
void mark(Domain& domain, const EventAttributes& attributes, const NameOf& find_name) noexcept {
  if (!is_recorded(domain)) return;
  guarded([&] {
    Handler& self = handler();
    self.annotator.mark(StatedTexts(domain, attributes, find_name(), self.domains, self.schemas).texts());
    return 0;
  });
}

// The id of a range for the program: the next tool's, unless the range is recorded here, too. Ids of ours have this
// bit.
constexpr uint64_t kOurRange = uint64_t{1} << 63;

template <typename NameOf, typename Next>
uint64_t start(Domain& domain, const EventAttributes& attributes, const NameOf& find_name,
               const Next& start_next) noexcept {
  Handler& self = handler();
  uint64_t ours = 0;
  if (is_recorded(domain)) {
    ours = guarded([&] {
      return self.annotator.start_range(
          StatedTexts(domain, attributes, find_name(), self.domains, self.schemas).texts());
    });
  }
  const uint64_t next = start_next();
  if (ours == 0) return next;
  if (next != 0) guarded([&] { return self.next_ranges.keep(ours, next), 0; });
  return ours | kOurRange;
}

// Ends a range here, and returns its id for the next tool; 0: it has none there.
uint64_t end(uint64_t id) noexcept {
  if ((id & kOurRange) == 0) return id;
  if (is_inert()) return 0;
  Handler& self = handler();
  const uint64_t ours = id & ~kOurRange;
  return guarded([&]() -> uint64_t {
    self.annotator.end_range(ours);
    return self.next_ranges.take(ours);
  });
}

// A range has one level for the program: ours, else that of the next tool.
int level(int ours, int next) { return ours >= 0 ? ours : next; }

// --- Functions of the module CORE ----------------------------------------------------------------------------------

int range_push_ex(const EventAttributes* attributes) {
  Handler& self = handler();
  const int ours = push_ex(self.domains.default_domain(), attributes);
  auto* const next = self.next.core<int(const EventAttributes*)>(Core::kRangePushEx);
  if (next == nullptr) return ours;
  const EventAttributes passed = for_next(attributes);
  return level(ours, next(&passed));
}

int range_push_a(const char* message) {
  Handler& self = handler();
  const int ours = push_text<char>(message, op_in);
  auto* const next = self.next.core<int(const char*)>(Core::kRangePushA);
  return next == nullptr ? ours : level(ours, next(message));
}

int range_push_w(const wchar_t* message) {
  Handler& self = handler();
  const int ours = push_text<wchar_t>(message, wide_op);
  auto* const next = self.next.core<int(const wchar_t*)>(Core::kRangePushW);
  return next == nullptr ? ours : level(ours, next(message));
}

int range_pop() {
  Handler& self = handler();
  const int ours = pop(self.domains.default_domain());
  auto* const next = self.next.core<int()>(Core::kRangePop);
  return next == nullptr ? ours : level(ours, next());
}

void name_thread(uint32_t thread_id, std::string_view name) {
  Handler& self = handler();
  if (is_inert()) return;
  self.thread_names.name(thread_id, name);
  self.names_version.fetch_add(1, std::memory_order_release);
}

void name_os_thread_a(uint32_t thread_id, const char* name) {
  guarded([&] { return name_thread(thread_id, name_in(name)), 0; });
  if (auto* const next = handler().next.core<void(uint32_t, const char*)>(Core::kNameOsThreadA)) next(thread_id, name);
}

void name_os_thread_w(uint32_t thread_id, const wchar_t* name) {
  guarded([&] { return name_thread(thread_id, name_in(name)), 0; });
  if (auto* const next = handler().next.core<void(uint32_t, const wchar_t*)>(Core::kNameOsThreadW)) {
    next(thread_id, name);
  }
}

void mark_ex(const EventAttributes* attributes) {
  Handler& self = handler();
  const EventAttributes said = given(attributes);
  mark(self.domains.default_domain(), said, [&] { return name_in(said); });
  if (auto* const next = self.next.core<void(const EventAttributes*)>(Core::kMarkEx)) {
    const EventAttributes passed = for_next(attributes);
    next(&passed);
  }
}

void mark_a(const char* message) {
  mark(handler().domains.default_domain(), {}, [&] { return name_in(message); });
  if (auto* const next = handler().next.core<void(const char*)>(Core::kMarkA)) next(message);
}

void mark_w(const wchar_t* message) {
  mark(handler().domains.default_domain(), {}, [&] { return name_in(message); });
  if (auto* const next = handler().next.core<void(const wchar_t*)>(Core::kMarkW)) next(message);
}

uint64_t range_start_ex(const EventAttributes* attributes) {
  Handler& self = handler();
  const EventAttributes said = given(attributes);
  const auto find_name = [&] { return name_in(said); };
  return start(self.domains.default_domain(), said, find_name, [&]() -> uint64_t {
    auto* const next = self.next.core<uint64_t(const EventAttributes*)>(Core::kRangeStartEx);
    if (next == nullptr) return 0;
    const EventAttributes passed = for_next(attributes);
    return next(&passed);
  });
}

uint64_t range_start_a(const char* message) {
  Handler& self = handler();
  const auto find_name = [&] { return name_in(message); };
  return start(self.domains.default_domain(), {}, find_name, [&]() -> uint64_t {
    auto* const next = self.next.core<uint64_t(const char*)>(Core::kRangeStartA);
    return next == nullptr ? 0 : next(message);
  });
}

uint64_t range_start_w(const wchar_t* message) {
  Handler& self = handler();
  const auto find_name = [&] { return name_in(message); };
  return start(self.domains.default_domain(), {}, find_name, [&]() -> uint64_t {
    auto* const next = self.next.core<uint64_t(const wchar_t*)>(Core::kRangeStartW);
    return next == nullptr ? 0 : next(message);
  });
}

void range_end(uint64_t id) {
  const uint64_t next_id = end(id);
  auto* const next = handler().next.core<void(uint64_t)>(Core::kRangeEnd);
  if (next != nullptr && next_id != 0) next(next_id);
}

void name_category(void* domain, uint32_t category, std::string_view name) {
  if (is_inert()) return;
  handler().domains.name_category(handler().domains.of(domain), category, name);
}

void name_category_a(uint32_t category, const char* name) {
  guarded([&] { return name_category(nullptr, category, name_in(name)), 0; });
  if (auto* const next = handler().next.core<void(uint32_t, const char*)>(Core::kNameCategoryA)) next(category, name);
}

void name_category_w(uint32_t category, const wchar_t* name) {
  guarded([&] { return name_category(nullptr, category, name_in(name)), 0; });
  if (auto* const next = handler().next.core<void(uint32_t, const wchar_t*)>(Core::kNameCategoryW)) {
    next(category, name);
  }
}

// --- Functions of the module CORE2, which take a handle of ours ------------------------------------------------------

int domain_range_push_ex(void* domain, const EventAttributes* attributes) {
  Handler& self = handler();
  const int ours = push_ex(self.domains.of(domain), attributes);
  auto* const next = self.next.core2<int(void*, const EventAttributes*)>(Core2::kDomainRangePushEx);
  if (next == nullptr) return ours;
  const EventAttributes passed = for_next(attributes);
  return level(ours, next(for_next(domain), &passed));
}

int domain_range_pop(void* domain) {
  Handler& self = handler();
  const int ours = pop(self.domains.of(domain));
  auto* const next = self.next.core2<int(void*)>(Core2::kDomainRangePop);
  return next == nullptr ? ours : level(ours, next(for_next(domain)));
}

template <typename Text>
void* register_string(void* domain, const Text* text, Core2 id) {
  Handler& self = handler();
  if (is_inert()) return &self.no_string;
  return guarded([&]() -> void* {
    RegisteredString& string = self.domains.register_string(self.domains.of(domain), name_in(text));
    auto* const next = self.next.core2<void*(void*, const Text*)>(id);
    if (next != nullptr && !string.is_shared) string.next.store(next(for_next(domain), text));
    return &string;
  });
}

void* domain_register_string_a(void* domain, const char* text) {
  return register_string<char>(domain, text, Core2::kDomainRegisterStringA);
}

void* domain_register_string_w(void* domain, const wchar_t* text) {
  return register_string<wchar_t>(domain, text, Core2::kDomainRegisterStringW);
}

// A domain that is left out has a handle too: programs may give up NVTX altogether where there is none.
template <typename Text>
void* create_domain(const Text* text, Core2 id) {
  Handler& self = handler();
  if (is_inert()) return &self.domains.default_domain();
  return guarded([&]() -> void* {
    Domain& domain = self.domains.create(name_in(text));
    auto* const next = self.next.core2<void*(const Text*)>(id);
    if (next == nullptr || domain.next.load() != nullptr) return &domain;
    if (void* const superfluous = Domains::keep_next(domain, next(text))) {
      if (auto* const destroy = self.next.core2<void(void*)>(Core2::kDomainDestroy)) destroy(superfluous);
    }
    return &domain;
  });
}

void* domain_create_a(const char* name) { return create_domain<char>(name, Core2::kDomainCreateA); }

void* domain_create_w(const wchar_t* name) { return create_domain<wchar_t>(name, Core2::kDomainCreateW); }

void domain_destroy(void* domain) {
  if (domain == nullptr) return;
  Handler& self = handler();
  void* const handle = is_inert() ? for_next(domain) : self.domains.destroy(self.domains.of(domain));
  auto* const next = self.next.core2<void(void*)>(Core2::kDomainDestroy);
  if (next != nullptr && handle != nullptr) next(handle);
}

void domain_mark_ex(void* domain, const EventAttributes* attributes) {
  const EventAttributes said = given(attributes);
  mark(handler().domains.of(domain), said, [&] { return name_in(said); });
  auto* const next = handler().next.core2<void(void*, const EventAttributes*)>(Core2::kDomainMarkEx);
  if (next == nullptr) return;
  const EventAttributes passed = for_next(attributes);
  next(for_next(domain), &passed);
}

uint64_t domain_range_start_ex(void* domain, const EventAttributes* attributes) {
  Handler& self = handler();
  const EventAttributes said = given(attributes);
  const auto find_name = [&] { return name_in(said); };
  return start(self.domains.of(domain), said, find_name, [&]() -> uint64_t {
    auto* const next = self.next.core2<uint64_t(void*, const EventAttributes*)>(Core2::kDomainRangeStartEx);
    if (next == nullptr) return 0;
    const EventAttributes passed = for_next(attributes);
    return next(for_next(domain), &passed);
  });
}

void domain_range_end(void* domain, uint64_t id) {
  const uint64_t next_id = end(id);
  auto* const next = handler().next.core2<void(void*, uint64_t)>(Core2::kDomainRangeEnd);
  if (next != nullptr && next_id != 0) next(for_next(domain), next_id);
}

// --- Functions of the modules CUDA and CUDART ------------------------------------------------------------------------

void name_device(int device, std::string_view name) { handler().cuda_names.name_device(device, name); }
void name_context(void* context, std::string_view name) {
  handler().cuda_names.name_context(context, name, handler().session.known_library());
}
void name_stream(void* stream, std::string_view name) {
  handler().cuda_names.name_stream(stream, name, handler().session.known_library());
}
// CUPTI has no number for the handle of an event.
void name_event(void*, std::string_view) {}

// A function that names an object: `record` keeps the name, and the next tool gets the call.
template <auto id, typename Object, typename Text, void (*record)(Object, std::string_view)>
void name_object(Object object, const Text* name) {
  const threads::NotCancelled not_cancelled;
  guarded([&] {
    if (is_inert()) return 0;
    record(object, name_in(name));
    handler().names_version.fetch_add(1, std::memory_order_release);
    return 0;
  });
  using Type = void(Object, const Text*);
  Type* next = nullptr;
  if constexpr (std::is_same_v<std::remove_const_t<decltype(id)>, Cuda>) {
    next = handler().next.cuda<Type>(id);
  } else {
    next = handler().next.cuda_runtime<Type>(id);
  }
  if (next != nullptr) next(object, name);
}

// --- Functions that only the next tool handles, where they take a handle of ours -------------------------------------

void* domain_resource_create(void* domain, void* attributes) {
  auto* const next = handler().next.core2<void*(void*, void*)>(Core2::kDomainResourceCreate);
  return next == nullptr ? nullptr : next(for_next(domain), attributes);
}

void domain_name_category_a(void* domain, uint32_t category, const char* name) {
  guarded([&] { return name_category(domain, category, name_in(name)), 0; });
  auto* const next = handler().next.core2<void(void*, uint32_t, const char*)>(Core2::kDomainNameCategoryA);
  if (next != nullptr) next(for_next(domain), category, name);
}

void domain_name_category_w(void* domain, uint32_t category, const wchar_t* name) {
  guarded([&] { return name_category(domain, category, name_in(name)), 0; });
  auto* const next = handler().next.core2<void(void*, uint32_t, const wchar_t*)>(Core2::kDomainNameCategoryW);
  if (next != nullptr) next(for_next(domain), category, name);
}

// ---------------------------------------------------------------------------------------------------------------------

struct Ours {
  uint32_t id;
  Function function;
};

template <typename Id, typename Type>
Ours entry(Id id, Type* function) {
  return {static_cast<uint32_t>(id), reinterpret_cast<Function>(function)};
}

void install(const CallbackTables& tables, Module module, std::initializer_list<Ours> functions) {
  Function** table = nullptr;
  unsigned size = 0;
  if (tables.get_module_function_table(module, &table, &size) == 0 || table == nullptr) return;
  for (const Ours& each : functions) {
    if (each.id < size && table[each.id] != nullptr) *table[each.id] = each.function;
  }
}

std::string path_of(const void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// --- Functions of the extension for structured payloads --------------------------------------------------------------

uint64_t register_schema(void* domain, const SchemaAttributes* attributes) {
  Handler& self = handler();
  if (is_inert()) return 0;
  return guarded([&] { return self.schemas.add_schema(self.domains.of(domain), attributes); });
}

uint64_t register_enum(void* domain, const EnumAttributes* attributes) {
  Handler& self = handler();
  if (is_inert()) return 0;
  return guarded([&] { return self.schemas.add_enum(self.domains.of(domain), attributes); });
}

void attach_payloads(const ExtensionModule& module) {
  if (module.struct_size < sizeof(ExtensionModule) || module.module_id != kPayloadModule ||
      module.compatibility < kFirstCompatibility || module.compatibility > kLastCompatibility ||
      module.num_segments == 0 || module.segments == nullptr) {
    return;
  }
  const ExtensionSegment& segment = module.segments[0];
  const auto set = [&segment](PayloadFunction id, auto* function) {
    if (static_cast<size_t>(id) < segment.num_slots) {
      segment.slots[static_cast<size_t>(id)] = reinterpret_cast<intptr_t>(function);
    }
  };
  set(PayloadFunction::kSchemaRegister, register_schema);
  set(PayloadFunction::kEnumRegister, register_enum);
}

// --- Names for journals ----------------------------------------------------------------------------------------------

uint64_t names_version() { return is_inert() ? 0 : handler().names_version.load(std::memory_order_acquire); }

capture::Names stated_names() {
  Handler& self = handler();
  capture::Names names;
  const ThreadNames::Known threads = self.thread_names.of_living_threads();
  for (const auto& [thread, name] : threads.names) names.texts["thread." + std::to_string(thread)] = name;
  const NamedObjects objects = self.cuda_names.names(self.session.known_library());
  for (const auto& [device, name] : objects.devices) names.texts["nvtx.device." + std::to_string(device)] = name;
  for (const auto& [context, name] : objects.contexts) names.texts["nvtx.context." + std::to_string(context)] = name;
  for (const auto& [place, name] : objects.streams) {
    names.texts["nvtx.stream." + std::to_string(place.first) + "." + std::to_string(place.second)] = name;
  }
  names.numbers["nvtx_names_unknown"] = static_cast<int64_t>(objects.unknown);
  names.numbers["nvtx_names_dropped"] = static_cast<int64_t>(threads.dropped + objects.dropped);
  names.numbers["nvtx_names_cut"] = static_cast<int64_t>(threads.cut + objects.cut);
  return names;
}

constexpr capture::StatedNames kStatedNames{names_version, stated_names};

// ---------------------------------------------------------------------------------------------------------------------

void attach(GetExportTable get_export_table) {
  const threads::NotCancelled not_cancelled;
  const auto* const tables = static_cast<const CallbackTables*>(get_export_table(kCallbackTables));
  if (tables == nullptr || tables->struct_size < sizeof(CallbackTables)) return;
  Handler& self = handler();
  std::string library =
      path_of(reinterpret_cast<const void*>(get_export_table));  // waits for the dynamic linker's lock
  if (!is_inert()) {
    const threads::MutexLock lock(self.mutex);
    const bool is_known = std::find(self.libraries.begin(), self.libraries.end(), library) != self.libraries.end();
    if (!is_known) self.libraries.push_back(std::move(library));
  }
  self.session.set_stated_names(&kStatedNames);
  self.next.attach(get_export_table, *tables);
  install(*tables, Module::kCore,
          {entry(Core::kMarkEx, mark_ex), entry(Core::kMarkA, mark_a), entry(Core::kMarkW, mark_w),
           entry(Core::kRangeStartEx, range_start_ex), entry(Core::kRangeStartA, range_start_a),
           entry(Core::kRangeStartW, range_start_w), entry(Core::kRangeEnd, range_end),
           entry(Core::kNameCategoryA, name_category_a), entry(Core::kNameCategoryW, name_category_w),
           entry(Core::kRangePushEx, range_push_ex), entry(Core::kRangePushA, range_push_a),
           entry(Core::kRangePushW, range_push_w), entry(Core::kRangePop, range_pop),
           entry(Core::kNameOsThreadA, name_os_thread_a), entry(Core::kNameOsThreadW, name_os_thread_w)});
  install(
      *tables, Module::kCore2,
      {entry(Core2::kDomainMarkEx, domain_mark_ex), entry(Core2::kDomainRangeStartEx, domain_range_start_ex),
       entry(Core2::kDomainRangeEnd, domain_range_end), entry(Core2::kDomainRangePushEx, domain_range_push_ex),
       entry(Core2::kDomainRangePop, domain_range_pop), entry(Core2::kDomainResourceCreate, domain_resource_create),
       entry(Core2::kDomainNameCategoryA, domain_name_category_a),
       entry(Core2::kDomainNameCategoryW, domain_name_category_w),
       entry(Core2::kDomainRegisterStringA, domain_register_string_a),
       entry(Core2::kDomainRegisterStringW, domain_register_string_w), entry(Core2::kDomainCreateA, domain_create_a),
       entry(Core2::kDomainCreateW, domain_create_w), entry(Core2::kDomainDestroy, domain_destroy)});
  install(*tables, Module::kCuda,
          {entry(Cuda::kNameDeviceA, name_object<Cuda::kNameDeviceA, int, char, name_device>),
           entry(Cuda::kNameDeviceW, name_object<Cuda::kNameDeviceW, int, wchar_t, name_device>),
           entry(Cuda::kNameContextA, name_object<Cuda::kNameContextA, void*, char, name_context>),
           entry(Cuda::kNameContextW, name_object<Cuda::kNameContextW, void*, wchar_t, name_context>),
           entry(Cuda::kNameStreamA, name_object<Cuda::kNameStreamA, void*, char, name_stream>),
           entry(Cuda::kNameStreamW, name_object<Cuda::kNameStreamW, void*, wchar_t, name_stream>),
           entry(Cuda::kNameEventA, name_object<Cuda::kNameEventA, void*, char, name_event>),
           entry(Cuda::kNameEventW, name_object<Cuda::kNameEventW, void*, wchar_t, name_event>)});
  using Runtime = CudaRuntime;
  install(*tables, Module::kCudaRuntime,
          {entry(Runtime::kNameDeviceA, name_object<Runtime::kNameDeviceA, int, char, name_device>),
           entry(Runtime::kNameDeviceW, name_object<Runtime::kNameDeviceW, int, wchar_t, name_device>),
           entry(Runtime::kNameStreamA, name_object<Runtime::kNameStreamA, void*, char, name_stream>),
           entry(Runtime::kNameStreamW, name_object<Runtime::kNameStreamW, void*, wchar_t, name_stream>),
           entry(Runtime::kNameEventA, name_object<Runtime::kNameEventA, void*, char, name_event>),
           entry(Runtime::kNameEventW, name_object<Runtime::kNameEventW, void*, wchar_t, name_event>)});
}

}  // namespace

Status status(const std::vector<std::string>& wanted) {
  Handler& self = handler();
  Status status{};
  if (is_inert()) return status;
  status.domains = domain_names(wanted);
  status.failures = self.failures.load(std::memory_order_relaxed);
  status.cuda_names = self.cuda_names.names(self.session.known_library());
  ThreadNames::Known threads = self.thread_names.of_living_threads();
  status.thread_names = std::move(threads.names);
  status.names_dropped = status.cuda_names.dropped + threads.dropped;
  status.names_cut = status.cuda_names.cut + threads.cut;
  status.next_tool_trouble = self.next.trouble();
  if (!threads::lock_within(self.mutex, threads::kPatience)) return status;
  const threads::MutexLock lock(self.mutex, std::adopt_lock);
  status.libraries = self.libraries;
  return status;
}

DomainNames domain_names(const std::vector<std::string>& wanted) {
  if (is_inert()) return {};
  Handler& self = handler();
  return {self.domains.names(), self.domains.absent(wanted)};
}

std::string library_path() { return path_of(reinterpret_cast<const void*>(&InitializeInjectionNvtx2)); }

}  // namespace collector::nvtx

int InitializeInjectionNvtxExtension(collector::nvtx::ExtensionModule* module) {
  if (module != nullptr) collector::nvtx::attach_payloads(*module);
  return 1;
}

int InitializeInjectionNvtx2(collector::nvtx::GetExportTable get_export_table) {
  if (get_export_table != nullptr) {
    collector::nvtx::guarded([&] { return collector::nvtx::attach(get_export_table), 0; });
  }
  return 1;
}

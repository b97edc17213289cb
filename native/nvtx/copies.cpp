#include "nvtx/copies.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "nvtx/handler.h"
#include "threads/mutex.h"
#include "threads/not_cancelled.h"

namespace collector::nvtx {
namespace {

constexpr std::string_view kVariable = "NVTX_INJECTION64_PATH";
constexpr std::string_view kInitializer = "InitializeInjectionNvtx2";
// The static state of a copy; its first member is 2 once the copy has found its tool, or that there is none.
constexpr std::string_view kGlobals = "nvtxGlobals_v3";
constexpr uint32_t kInitialised = 2;
constexpr const char* kProgram = "/proc/self/exe";

// A file in memory. Empty if it cannot be read.
class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat info{};
    if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
      const auto bytes = static_cast<size_t>(info.st_size);
      void* const data = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
      if (data != MAP_FAILED) bytes_ = {static_cast<const char*>(data), bytes};
    }
    ::close(file);
  }
  ~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view part(uint64_t offset, uint64_t bytes) const {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) return {};
    return bytes_.substr(offset, bytes);
  }

 private:
  std::string_view bytes_;
};

template <typename Entry>
std::vector<Entry> entries(std::string_view bytes) {
  std::vector<Entry> found(bytes.size() / sizeof(Entry));
  if (!found.empty()) std::memcpy(found.data(), bytes.data(), found.size() * sizeof(Entry));
  return found;
}

std::string_view text_at(std::string_view texts, uint64_t offset) {
  if (offset >= texts.size()) return {};
  const std::string_view rest = texts.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

bool contains(std::string_view bytes, std::string_view text) {
  return ::memmem(bytes.data(), bytes.size(), text.data(), text.size()) != nullptr;
}

struct FoundCopy {
  std::vector<uint64_t> globals;  // addresses in the library; empty: its symbols are stripped
};

// Whether a library contains a copy of NVTX.
std::optional<FoundCopy> find_copy(const char* path) {
  const MappedFile file(path);
  const auto heads = entries<ElfW(Ehdr)>(file.part(0, sizeof(ElfW(Ehdr))));
  if (heads.empty() || std::memcmp(heads[0].e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  if (heads[0].e_ident[EI_CLASS] != ELFCLASS64 || heads[0].e_shentsize != sizeof(ElfW(Shdr))) return std::nullopt;
  const auto sections =
      entries<ElfW(Shdr)>(file.part(heads[0].e_shoff, uint64_t{heads[0].e_shnum} * sizeof(ElfW(Shdr))));
  if (heads[0].e_shstrndx >= sections.size()) return std::nullopt;
  const ElfW(Shdr) & names_section = sections[heads[0].e_shstrndx];
  const std::string_view names = file.part(names_section.sh_offset, names_section.sh_size);
  bool has_variable = false;
  bool has_initializer = false;
  for (const ElfW(Shdr) & section : sections) {
    if (section.sh_type != SHT_PROGBITS || text_at(names, section.sh_name).substr(0, 7) != ".rodata") continue;
    const std::string_view bytes = file.part(section.sh_offset, section.sh_size);
    has_variable = has_variable || contains(bytes, kVariable);
    has_initializer = has_initializer || contains(bytes, kInitializer);
  }
  if (!has_variable || !has_initializer) return std::nullopt;
  FoundCopy copy;
  for (const ElfW(Shdr) & section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const ElfW(Shdr) & texts_section = sections[section.sh_link];
    const std::string_view texts = file.part(texts_section.sh_offset, texts_section.sh_size);
    for (const ElfW(Sym) & symbol : entries<ElfW(Sym)>(file.part(section.sh_offset, section.sh_size))) {
      if (symbol.st_value != 0 && symbol.st_size > sizeof(uint32_t) && text_at(texts, symbol.st_name) == kGlobals) {
        copy.globals.push_back(symbol.st_value);
      }
    }
  }
  return copy;
}

struct LoadedLibrary {
  std::string path;
  uint64_t base;
};

std::vector<LoadedLibrary> loaded_libraries() {
  std::vector<LoadedLibrary> libraries;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        const char* const path = info->dlpi_name != nullptr && info->dlpi_name[0] != '\0' ? info->dlpi_name : kProgram;
        static_cast<std::vector<LoadedLibrary>*>(found)->push_back({path, info->dlpi_addr});
        return 0;
      },
      &libraries);
  return libraries;
}

// The dynamic linker names the program as it was called, which may be a word of PATH.
std::string real_path(const std::string& path) {
  char* const found = ::realpath(path.find('/') == std::string::npos ? kProgram : path.c_str(), nullptr);
  const std::string real = found == nullptr ? path : found;
  std::free(found);
  return real;
}

bool is_initialised(const FoundCopy& copy, uint64_t base) {
  return std::any_of(copy.globals.begin(), copy.globals.end(), [base](uint64_t address) {
    return *reinterpret_cast<const volatile uint32_t*>(base + address) == kInitialised;
  });
}

}  // namespace

const char* name_of(CopyState state) {
  constexpr const char* kNames[] = {"fresh", "handled", "missed", "unknown"};
  return kNames[static_cast<size_t>(state)];
}

bool is_armed() {
  const char* const tool = std::getenv(kVariable.data());
  const std::string own = library_path();
  struct stat named{};
  struct stat ours{};
  return tool != nullptr && ::stat(tool, &named) == 0 && ::stat(own.c_str(), &ours) == 0 &&
         named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
}

std::vector<Copy> copies() {
  const threads::NotCancelled not_cancelled;
  static auto* const mutex = new threads::Mutex();
  static auto* const known = new std::map<std::string, std::optional<FoundCopy>>();
  const threads::MutexLock lock(*mutex);
  std::vector<std::string> handled;
  for (const std::string& path : status().libraries) handled.push_back(real_path(path));
  const std::string own = library_path();
  std::vector<Copy> copies;
  for (const LoadedLibrary& library : loaded_libraries()) {
    if (library.path == own) continue;
    auto at = known->find(library.path);
    if (at == known->end()) at = known->emplace(library.path, find_copy(library.path.c_str())).first;
    if (!at->second) continue;
    CopyState state = CopyState::kUnknown;
    if (std::find(handled.begin(), handled.end(), real_path(library.path)) != handled.end()) {
      state = CopyState::kHandled;
    } else if (!at->second->globals.empty()) {
      state = is_initialised(*at->second, library.base) ? CopyState::kMissed : CopyState::kFresh;
    }
    copies.push_back({library.path == kProgram ? real_path(library.path) : library.path, state});
  }
  return copies;
}

}  // namespace collector::nvtx

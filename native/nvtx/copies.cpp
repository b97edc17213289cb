#include "nvtx/copies.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "nvtx/handler.h"
#include "threads/mutex.h"
#include "threads/not_cancelled.h"
#include "threads/patient_lock.h"

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
    const int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return;
    struct stat info{};
    if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
      inode_ = info.st_ino;
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
  uint64_t inode() const { return inode_; }

 private:
  std::string_view bytes_;
  uint64_t inode_ = 0;
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

// The build id in the notes of a library; empty: they have none.
std::string_view build_id_in(std::string_view notes) {
  constexpr std::string_view kOwner("GNU", 4);
  const auto padded = [](uint64_t size) { return (size + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head{};
    std::memcpy(&head, notes.data(), sizeof(head));
    notes.remove_prefix(sizeof(head));
    const uint64_t size = padded(head.n_namesz) + padded(head.n_descsz);
    if (size > notes.size()) return {};
    if (head.n_type == NT_GNU_BUILD_ID && notes.substr(0, head.n_namesz) == kOwner) {
      return notes.substr(padded(head.n_namesz), head.n_descsz);
    }
    notes.remove_prefix(size);
  }
  return {};
}

struct FoundCopy {
  std::vector<uint64_t> globals;  // addresses in the library; empty: its symbols are stripped
  std::string build_id;           // of the file; empty: it has none
  uint64_t inode;                 // likewise
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
  FoundCopy copy{{}, {}, file.inode()};
  if (heads[0].e_phentsize == sizeof(ElfW(Phdr))) {
    const uint64_t bytes = uint64_t{heads[0].e_phnum} * sizeof(ElfW(Phdr));
    for (const ElfW(Phdr) & part : entries<ElfW(Phdr)>(file.part(heads[0].e_phoff, bytes))) {
      if (part.p_type == PT_NOTE && copy.build_id.empty()) {
        copy.build_id = build_id_in(file.part(part.p_offset, part.p_filesz));
      }
    }
  }
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
  uint64_t headers;  // the address of its program headers, which are in its first bytes
  std::optional<FoundCopy> copy;
  std::optional<bool> is_initialised;  // no value: not known
};

// A library while the dynamic linker keeps it loaded, which is as long as its callback lasts.
class MappedLibrary {
 public:
  explicit MappedLibrary(const dl_phdr_info& info) : info_(info) {}

  std::string path() const {
    return info_.dlpi_name != nullptr && info_.dlpi_name[0] != '\0' ? info_.dlpi_name : kProgram;
  }
  uint64_t base() const { return info_.dlpi_addr; }
  uint64_t headers() const { return reinterpret_cast<uint64_t>(info_.dlpi_phdr); }

  // The bytes at an address in the library; empty: they are not mapped and readable.
  std::string_view part(uint64_t address, uint64_t bytes) const {
    for (int i = 0; i < info_.dlpi_phnum; ++i) {
      const ElfW(Phdr) & load = info_.dlpi_phdr[i];
      if (load.p_type != PT_LOAD || (load.p_flags & PF_R) == 0 || address < load.p_vaddr) continue;
      const uint64_t offset = address - load.p_vaddr;
      if (offset > load.p_memsz || bytes > load.p_memsz - offset) continue;
      return {reinterpret_cast<const char*>(info_.dlpi_addr + address), bytes};
    }
    return {};
  }

  std::string_view build_id() const {
    for (int i = 0; i < info_.dlpi_phnum; ++i) {
      const ElfW(Phdr) & notes = info_.dlpi_phdr[i];
      if (notes.p_type != PT_NOTE) continue;
      if (const std::string_view id = build_id_in(part(notes.p_vaddr, notes.p_memsz)); !id.empty()) return id;
    }
    return {};
  }

 private:
  const dl_phdr_info& info_;
};

template <typename Visit>
void each_library(Visit visit) {
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* call) {
        (*static_cast<Visit*>(call))(MappedLibrary(*info));
        return 0;
      },
      &visit);
}

std::vector<LoadedLibrary> loaded_libraries() {
  std::vector<LoadedLibrary> libraries;
  each_library([&](const MappedLibrary& library) {
    libraries.push_back({library.path(), library.base(), library.headers(), {}, {}});
  });
  return libraries;
}

// The inode of the file that is mapped at an address; 0: none.
uint64_t inode_at(uint64_t address) {
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
  std::array<char, 512> line{};  // longer ones end in a part of their path, which no line looks like
  while (maps && std::fgets(line.data(), line.size(), maps.get()) != nullptr) {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t inode = 0;
    const int found = std::sscanf(line.data(), "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %" SCNu64, &begin, &end, &inode);
    if (found == 3 && begin <= address && address < end) return inode;
  }
  return 0;
}

// Finds out which copies have been initialised, by their state in memory. A file may have been replaced since it was
// loaded, as an upgrade of a package does: the addresses of the new one mean nothing then.
void read_states(std::vector<LoadedLibrary>& libraries) {
  for (LoadedLibrary& library : libraries) {
    if (!library.copy || library.copy->globals.empty()) continue;
    const FoundCopy& copy = *library.copy;
    const bool has_its_inode = copy.build_id.empty() && copy.inode != 0 && inode_at(library.headers) == copy.inode;
    each_library([&](const MappedLibrary& mapped) {
      if (mapped.base() != library.base || mapped.path() != library.path) return;
      const bool is_its_file = mapped.build_id() == copy.build_id && (!copy.build_id.empty() || has_its_inode);
      if (!is_its_file) return;
      bool is_initialised = false;
      for (const uint64_t address : copy.globals) {
        const std::string_view state = mapped.part(address, sizeof(uint32_t));
        if (state.empty() || address % alignof(uint32_t) != 0) return;
        is_initialised |= *reinterpret_cast<const volatile uint32_t*>(state.data()) == kInitialised;
      }
      library.is_initialised = is_initialised;
    });
  }
}

// The dynamic linker names the program as it was called, which may be a word of PATH.
std::string real_path(const std::string& path) {
  char* const found = ::realpath(path.find('/') == std::string::npos ? kProgram : path.c_str(), nullptr);
  const std::string real = found == nullptr ? path : found;
  std::free(found);
  return real;
}

// What was found in the files of libraries: each is read once.
class FoundCopies {
 public:
  std::optional<FoundCopy> of(const std::string& path) {
    if (!threads::lock_within(mutex_, threads::kPatience)) return std::nullopt;
    const threads::MutexLock lock(mutex_, std::adopt_lock);
    auto at = known_.find(path);
    if (at == known_.end()) at = known_.emplace(path, find_copy(path.c_str())).first;
    return at->second;
  }

 private:
  threads::Mutex mutex_;
  std::map<std::string, std::optional<FoundCopy>> known_ GUARDED_BY(mutex_);
};

}  // namespace

const char* name_of(CopyState state) {
  constexpr const char* kNames[] = {"fresh", "handled", "missed", "unknown"};
  return kNames[static_cast<size_t>(state)];
}

bool is_armed() { return is_named_by(kVariable.data()); }

bool is_named_by(const char* variable) {
  const char* const tool = std::getenv(variable);
  if (tool == nullptr) return false;
  const std::string own = library_path();
  struct stat named{};
  struct stat ours{};
  return ::stat(tool, &named) == 0 && ::stat(own.c_str(), &ours) == 0 && named.st_dev == ours.st_dev &&
         named.st_ino == ours.st_ino;
}

std::vector<Copy> copies() {
  const threads::NotCancelled not_cancelled;
  static auto* const found = new FoundCopies();  // never destroyed: the exit of a program uses it
  std::vector<std::string> handled;
  for (const std::string& path : status().libraries) handled.push_back(real_path(path));
  const std::string own = library_path();
  // No lock is held while the dynamic linker's is waited for.
  std::vector<LoadedLibrary> libraries = loaded_libraries();
  for (LoadedLibrary& library : libraries) {
    if (library.path != own) library.copy = found->of(library.path);
  }
  read_states(libraries);
  std::vector<Copy> copies;
  for (const LoadedLibrary& library : libraries) {
    if (!library.copy) continue;
    CopyState state = CopyState::kUnknown;
    if (std::find(handled.begin(), handled.end(), real_path(library.path)) != handled.end()) {
      state = CopyState::kHandled;
    } else if (library.is_initialised) {
      state = *library.is_initialised ? CopyState::kMissed : CopyState::kFresh;
    }
    copies.push_back({library.path == kProgram ? real_path(library.path) : library.path, state});
  }
  return copies;
}

}  // namespace collector::nvtx

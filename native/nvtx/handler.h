// Our handler of NVTX: ranges that a program pushes and pops become annotations of the open session.
//
// NVTX finds it through NVTX_INJECTION64_PATH, which names this library (collector.nvtx.arm sets it). The handler works
// with every libcupti and without one; CUPTI's own records of NVTX (MARKER) are not used: CUPTI 13.0.48 crashes in
// them, and they come too late to be attached to launches.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nvtx/abi.h"
#include "nvtx/cuda_names.h"
#include "nvtx/payload_abi.h"

// Called by each copy of NVTX at its first call. Returns 1: with 0, NVTX would unmap this library.
// NOLINTNEXTLINE(readability-identifier-naming): NVTX looks for this name
extern "C" int InitializeInjectionNvtx2(collector::nvtx::GetExportTable get_export_table);

// Called by each copy of NVTX's extensions at its first call. Returns 1.
// NOLINTNEXTLINE(readability-identifier-naming): NVTX looks for this name
extern "C" int InitializeInjectionNvtxExtension(collector::nvtx::ExtensionModule* module);

namespace collector::nvtx {

// "" is the default domain.
struct DomainNames {
  std::vector<std::string> made;
  std::vector<std::string> absent;  // the wanted domains that are not among them, if there are others
};

// What the handler has seen since it was loaded.
struct Status {
  std::vector<std::string> libraries;  // the libraries with a copy of NVTX that call the handler
  DomainNames domains;
  std::string next_tool_trouble;                 // why the next tool could not be loaded
  std::map<uint32_t, std::string> thread_names;  // of threads that exist
  NamedObjects cuda_names;
  uint64_t names_dropped;  // of threads and of CUDA's objects: they were too many to be kept
  uint64_t names_cut;      // likewise: their beginnings were kept
  uint64_t failures;       // calls that were not recorded because memory ran out
};

// `wanted`: the domains that a session has selected by name.
Status status(const std::vector<std::string>& wanted = {});

// The part of it that the exit of a program needs.
DomainNames domain_names(const std::vector<std::string>& wanted);

// The path of this library.
std::string library_path();

}  // namespace collector::nvtx

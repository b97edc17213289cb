#include "cupti/failure.h"

namespace collector::cupti {
namespace {

// Results that have a remedy. CUPTI reports a missing driver as 15 up to 12.9, and as 2 or 999 from 13.0.
struct Meaning {
  Result result;
  FailureKind kind;
  const char* cause;
  const char* remedy;
};
constexpr Meaning kMeanings[] = {
    {Result::kNotInitialized, FailureKind::kDriverNotFound, "CUPTI could not initialise the NVIDIA driver",
     "Check that nvidia-smi works, and that no .../stubs folder comes first on LD_LIBRARY_PATH"},
    {Result::kInvalidDevice, FailureKind::kDriverNotFound, "CUPTI found no usable NVIDIA device",
     "Check that nvidia-smi lists a device and that CUDA_VISIBLE_DEVICES does not hide it"},
    {Result::kUnknown, FailureKind::kDriverNotFound, "CUPTI could not use the NVIDIA driver",
     "Check that nvidia-smi works and that the driver is not older than this libcupti"},
    {Result::kInsufficientPrivileges, FailureKind::kPermissionDenied, "the driver denies tracing to this user",
     "Ask the administrator for NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN"},
    {Result::kVirtualizedDeviceInsufficientPrivileges, FailureKind::kPermissionDenied,
     "the hypervisor denies tracing on this virtual GPU", "Enable profiling for the vGPU in its host's settings"},
    {Result::kVirtualizedDeviceNotSupported, FailureKind::kPermissionDenied, "this virtual GPU cannot be traced",
     "Use a GPU that is passed through whole, or a vGPU profile with profiling enabled"},
    {Result::kConfidentialComputingNotSupported, FailureKind::kPermissionDenied,
     "the GPU is in confidential-computing mode, which forbids tracing", "Turn the mode off, or use its dev mode"},
    {Result::kCmpDeviceNotSupported, FailureKind::kPermissionDenied, "CMP devices cannot be traced", ""},
    {Result::kMigDeviceNotSupported, FailureKind::kPermissionDenied, "this MIG instance cannot be traced",
     "Use a compute instance that spans its whole GPU instance"},
    {Result::kSliDeviceNotSupported, FailureKind::kPermissionDenied, "GPUs in SLI mode cannot be traced", ""},
    {Result::kWslDeviceNotSupported, FailureKind::kPermissionDenied, "this driver cannot trace under WSL",
     "Update the Windows driver"},
    {Result::kMultipleSubscribersNotSupported, FailureKind::kSubscriberConflict,
     "another CUPTI client holds this process's subscription",
     "Stop the other profiler (Nsight, compute-sanitizer, cuda-gdb, or a profiler inside this process) and trace "
     "again"},
    {Result::kNotCompatible, FailureKind::kSubscriberConflict,
     "another client put CUPTI into a mode (V2 or user-defined records) that excludes this one",
     "Trace before the other profiler's first use, or in a process of its own"},
};

}  // namespace

const char* name_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::kDriverNotFound:
      return "driver-not-found";
    case FailureKind::kCuptiNotFound:
      return "cupti-not-found";
    case FailureKind::kCuptiUnusable:
      return "cupti-unusable";
    case FailureKind::kPermissionDenied:
      return "permission-denied";
    case FailureKind::kSubscriberConflict:
      return "subscriber-conflict";
    case FailureKind::kCuptiCall:
      return "cupti-call";
    case FailureKind::kAlreadyActive:
      return "already-active";
    case FailureKind::kNotListening:
      return "not-listening";
  }
  return "cupti-call";
}

Failure describe(const char* call, Result result, const std::string& text) {
  const std::string where = std::string(" (") + call + ": " + (text.empty() ? "error" : text) + ", " +
                            std::to_string(static_cast<uint32_t>(result)) + ")";
  for (const Meaning& meaning : kMeanings) {
    if (meaning.result == result) return {meaning.kind, meaning.cause + where, meaning.remedy};
  }
  return {FailureKind::kCuptiCall, "a CUPTI call failed" + where, "Report it with the output of `collector info`"};
}

}  // namespace collector::cupti

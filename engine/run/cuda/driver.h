// Driver: NVIDIA's driver, found when the program runs.
//
// `libcuda.so.1` is opened by name, or the library that EAGLE_CUDA_DRIVER names; nothing is linked, so one
// binary runs with a GPU and without. Entry points are asked for by the version of the interface that they
// are called with. Thread-safe; never unloaded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/run/cuda/driver_api.h"

namespace eagle::run::cuda {

// A GPU as its driver describes it.
struct DeviceInfo {
  int ordinal = 0;  // "cuda:0"
  std::string name;
  std::string uuid;  // "GPU-5f1e..." as nvidia-smi prints it
  int major = 0;     // of the compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::uint64_t bytes = 0;  // of memory
  // Whether memory of it can be handed to other processes as a descriptor.
  bool descriptors = false;
};

// "cuda:0 (NVIDIA H200, GPU-5f1e...)"
std::string text_of(const DeviceInfo& info);

class Driver {
public:
  // SYSTEM says which library there is none of, which entry points it lacks, or what its cuInit says. No
  // library at all is no fault of the host: `found` is false then.
  static StatusOr<std::shared_ptr<const Driver>> open(bool* found = nullptr);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] const api::Functions& call() const { return functions_; }
  [[nodiscard]] const std::string& library() const { return library_; }
  [[nodiscard]] int version() const { return version_; }  // 12040: of CUDA 12.4
  // Whether it has all that graphs need; SYSTEM names what is missing.
  [[nodiscard]] const Status& graphs() const { return graphs_; }
  // The same of conditional nodes; SYSTEM for a driver that is older than CUDA 12.4.
  [[nodiscard]] const Status& conditionals() const { return conditionals_; }
  // Whether memory can be handed to other processes as a descriptor (CUDA 10.2), or else as 64 bytes
  // (CUDA 11.0); SYSTEM names what is missing.
  [[nodiscard]] const Status& descriptors() const { return descriptors_; }
  [[nodiscard]] const Status& ipc() const { return ipc_; }
  // Empty: there is no GPU that this process may use.
  [[nodiscard]] StatusOr<std::vector<DeviceInfo>> devices() const;
  // What a call that did not succeed says: the call, the driver's name for the error, and its words.
  // OUT_OF_MEMORY, or SYSTEM.
  [[nodiscard]] Status status(api::Result result, std::string_view what) const;

private:
  Driver() = default;
  Status load(void* library);
  void load_conditionals(void* library);
  void load_sharing(void* library);
  [[nodiscard]] StatusOr<DeviceInfo> device(int ordinal) const;

  api::Functions functions_;
  Status graphs_;
  Status conditionals_;
  Status descriptors_;
  Status ipc_;
  std::string library_;
  int version_ = 0;
};

std::string version_text(int version);  // "12.4" of 12040

}  // namespace eagle::run::cuda

// Every name and number of engine/run/cuda/driver_api.h against the toolkit's cuda.h.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "engine/run/cuda/driver_api.h"

namespace eagle::run::cuda::api {
namespace {

// Types may have other names, not other sizes: handles are pointers, enumerations are ints.
template <typename Ours, typename Theirs>
constexpr bool same_parameter() {
  if (std::is_pointer_v<Ours>) return std::is_pointer_v<Theirs>;
  return sizeof(Ours) == sizeof(Theirs) && !std::is_pointer_v<Theirs>;
}
template <typename... Ours, typename... Theirs>
constexpr bool same(Result (*)(Ours...), CUresult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
    return false;
  } else {
    return (same_parameter<Ours, Theirs>() && ...);
  }
}

TEST(DriverApi, FunctionsTakeWhatTheDriversTake) {
  Functions ours;
  // cuda.h renames most functions to their newest form, which is the one that we ask for.
#define EAGLE_COMPARE(name, version, symbol, parameters) \
  EXPECT_TRUE(same(ours.name, static_cast<decltype(&::symbol)>(nullptr))) << #symbol;
  EAGLE_CUDA_FUNCTIONS(EAGLE_COMPARE)
  EAGLE_CUDA_GRAPH_FUNCTIONS(EAGLE_COMPARE)
  EAGLE_CUDA_CONDITIONAL_FUNCTIONS(EAGLE_COMPARE)
  EAGLE_CUDA_DESCRIPTOR_FUNCTIONS(EAGLE_COMPARE)
  EAGLE_CUDA_IPC_FUNCTIONS(EAGLE_COMPARE)
#undef EAGLE_COMPARE
}

TEST(DriverApi, NumbersAreTheDrivers) {
  static_assert(sizeof(KernelNodeParams) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1));
  static_assert(offsetof(KernelNodeParams, parameters) == offsetof(CUDA_KERNEL_NODE_PARAMS_v1, kernelParams));
  static_assert(sizeof(Uuid) == sizeof(CUuuid) && sizeof(DevicePointer) == sizeof(CUdeviceptr));
  static_assert(sizeof(ConditionalNodeParams) == sizeof(CUgraphNodeParams));
  static_assert(offsetof(ConditionalNodeParams, handle) == offsetof(CUgraphNodeParams, conditional));
  static_assert(offsetof(ConditionalNodeParams, bodies) ==
                offsetof(CUgraphNodeParams, conditional) +
                    offsetof(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out));
  static_assert(offsetof(ConditionalNodeParams, context) ==
                offsetof(CUgraphNodeParams, conditional) + offsetof(CUDA_CONDITIONAL_NODE_PARAMS, ctx));
  static_assert(offsetof(ConditionalNodeParams, reserved_behind) == offsetof(CUgraphNodeParams, reserved2));
  static_assert(sizeof(CopyRows) == sizeof(CUDA_MEMCPY2D));
  static_assert(offsetof(CopyRows, from_kind) == offsetof(CUDA_MEMCPY2D, srcMemoryType));
  static_assert(offsetof(CopyRows, from_device) == offsetof(CUDA_MEMCPY2D, srcDevice));
  static_assert(offsetof(CopyRows, from_pitch) == offsetof(CUDA_MEMCPY2D, srcPitch));
  static_assert(offsetof(CopyRows, to_device) == offsetof(CUDA_MEMCPY2D, dstDevice));
  static_assert(offsetof(CopyRows, to_pitch) == offsetof(CUDA_MEMCPY2D, dstPitch));
  static_assert(offsetof(CopyRows, rows) == offsetof(CUDA_MEMCPY2D, Height));
  EXPECT_EQ(memory_of_host, CU_MEMORYTYPE_HOST);
  EXPECT_EQ(memory_of_device, CU_MEMORYTYPE_DEVICE);
  static_assert(sizeof(IpcHandle) == sizeof(CUipcMemHandle));
  static_assert(sizeof(AllocationProperties) == sizeof(CUmemAllocationProp));
  static_assert(offsetof(AllocationProperties, handle_types) ==
                offsetof(CUmemAllocationProp, requestedHandleTypes));
  static_assert(offsetof(AllocationProperties, location) == offsetof(CUmemAllocationProp, location));
  static_assert(sizeof(AccessDescription) == sizeof(CUmemAccessDesc));
  static_assert(offsetof(AccessDescription, flags) == offsetof(CUmemAccessDesc, flags));
  EXPECT_EQ(AllocationProperties().type, CU_MEM_ALLOCATION_TYPE_PINNED);
  EXPECT_EQ(MemoryLocation().type, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(AccessDescription().flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  EXPECT_EQ(handle_posix_descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  EXPECT_EQ(granularity_minimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  EXPECT_EQ(ipc_lazy_peer_access, static_cast<unsigned>(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  EXPECT_EQ(attribute_unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  EXPECT_EQ(attribute_virtual_memory, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  EXPECT_EQ(attribute_posix_descriptors, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
  EXPECT_EQ(ConditionalNodeParams().type, CU_GRAPH_NODE_TYPE_CONDITIONAL);
  EXPECT_EQ(conditional_if, CU_GRAPH_COND_TYPE_IF);
  EXPECT_EQ(conditional_while, CU_GRAPH_COND_TYPE_WHILE);
  EXPECT_EQ(success, CUDA_SUCCESS);
  EXPECT_EQ(invalid_value, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(not_initialised, CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(deinitialised, CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(unavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(no_device, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(invalid_device, CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(invalid_context, CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(no_binary_for_gpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(invalid_ptx, CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(unsupported_ptx_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(invalid_handle, CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(not_found, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(launch_out_of_resources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_EQ(misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(unknown, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(attribute_multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(attribute_compute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(attribute_compute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(pointer_context, CU_POINTER_ATTRIBUTE_CONTEXT);
  EXPECT_EQ(pointer_memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
  EXPECT_EQ(pointer_device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
  EXPECT_EQ(reinterpret_cast<CUstream>(stream_legacy), CU_STREAM_LEGACY);
  EXPECT_EQ(reinterpret_cast<CUstream>(stream_per_thread), CU_STREAM_PER_THREAD);
  EXPECT_EQ(stream_non_blocking, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(capture_global, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(capture_thread_local, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(capture_relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(capturing_nothing, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(capturing, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(capturing_in_vain, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_EQ(event_without_time, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING));
  EXPECT_EQ(user_object_unsynchronised, static_cast<unsigned>(CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  EXPECT_EQ(user_object_move, static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE));
  EXPECT_EQ(node_kernel, CU_GRAPH_NODE_TYPE_KERNEL);
  EXPECT_EQ(node_copy, CU_GRAPH_NODE_TYPE_MEMCPY);
  EXPECT_EQ(node_memset, CU_GRAPH_NODE_TYPE_MEMSET);
  EXPECT_EQ(node_host, CU_GRAPH_NODE_TYPE_HOST);
  EXPECT_EQ(node_graph, CU_GRAPH_NODE_TYPE_GRAPH);
  EXPECT_EQ(node_empty, CU_GRAPH_NODE_TYPE_EMPTY);
  EXPECT_EQ(node_allocation, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  EXPECT_EQ(node_free, CU_GRAPH_NODE_TYPE_MEM_FREE);
  EXPECT_EQ(node_conditional, CU_GRAPH_NODE_TYPE_CONDITIONAL);
  EXPECT_EQ(capture_unsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(capture_invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(capture_unmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(capture_unjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(capture_isolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(capture_wrong_thread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  EXPECT_EQ(jit_error_log_buffer, CU_JIT_ERROR_LOG_BUFFER);
  EXPECT_EQ(jit_error_log_buffer_bytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
}

}  // namespace
}  // namespace eagle::run::cuda::api

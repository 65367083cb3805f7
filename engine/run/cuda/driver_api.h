// The part of NVIDIA's driver API that the engine calls, declared here so that no build needs the CUDA
// toolkit.
//
// Names, numbers and layouts are those of the "CUDA Driver API" reference manual; where a toolkit is
// installed, tests/gpu/driver_api_test.cpp compares each of them with its cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eagle::run::cuda::api {

using Result = int;
using Device = int;
using DevicePointer = unsigned long long;
struct ContextRecord;
struct ModuleRecord;
struct FunctionRecord;
struct StreamRecord;
struct GraphRecord;
struct GraphNodeRecord;
struct GraphExecRecord;
struct EventRecord;
struct UserObjectRecord;
using Context = ContextRecord*;
using Module = ModuleRecord*;
using Function = FunctionRecord*;
using Stream = StreamRecord*;
using Graph = GraphRecord*;
using GraphNode = GraphNodeRecord*;
using GraphExec = GraphExecRecord*;
using Event = EventRecord*;
using UserObject = UserObjectRecord*;
using HostFunction = void (*)(void*);

struct Uuid {
  char bytes[16];
};

// CUipcMemHandle
struct IpcHandle {
  char bytes[64] = {};
};

// CUDA_MEMCPY2D
struct CopyRows {
  std::size_t from_x = 0, from_y = 0;
  int from_kind = 1;  // memory_of_host, memory_of_device
  const void* from_host = nullptr;
  DevicePointer from_device = 0;
  void* from_array = nullptr;
  std::size_t from_pitch = 0;
  std::size_t to_x = 0, to_y = 0;
  int to_kind = 1;
  void* to_host = nullptr;
  DevicePointer to_device = 0;
  void* to_array = nullptr;
  std::size_t to_pitch = 0;
  std::size_t bytes = 0;  // of a row
  std::size_t rows = 0;
};
inline constexpr int memory_of_host = 1;
inline constexpr int memory_of_device = 2;

// CUmemLocation
struct MemoryLocation {
  int type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
  int id = 0;    // of the device
};
// CUmemAllocationProp
struct AllocationProperties {
  int type = 1;          // CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;  // handle_posix_descriptor
  MemoryLocation location;
  void* windows_only = nullptr;
  unsigned char flags[8] = {};
};
// CUmemAccessDesc
struct AccessDescription {
  MemoryLocation location;
  int flags = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
};

// CUDA_KERNEL_NODE_PARAMS of version 10.0
struct KernelNodeParams {
  Function function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
};

// CUgraphNodeParams of a conditional node, with what is left of its union.
struct ConditionalNodeParams {
  int type = 13;  // CU_GRAPH_NODE_TYPE_CONDITIONAL
  int reserved_before[3] = {};
  std::uint64_t handle = 0;
  int kind = 0;  // conditional_if, conditional_while
  unsigned size = 1;
  Graph* bodies = nullptr;  // given by the driver
  Context context = nullptr;
  long long reserved[25] = {};
  long long reserved_behind = 0;
};
inline constexpr int conditional_if = 0;
inline constexpr int conditional_while = 1;

inline constexpr Result success = 0;
inline constexpr Result invalid_value = 1;
inline constexpr Result out_of_memory = 2;
inline constexpr Result not_initialised = 3;
inline constexpr Result deinitialised = 4;
inline constexpr Result unavailable = 46;
inline constexpr Result no_device = 100;
inline constexpr Result invalid_device = 101;
inline constexpr Result invalid_context = 201;
inline constexpr Result no_binary_for_gpu = 209;
inline constexpr Result invalid_ptx = 218;
inline constexpr Result unsupported_ptx_version = 222;
inline constexpr Result invalid_handle = 400;
inline constexpr Result not_found = 500;
inline constexpr Result not_ready = 600;
inline constexpr Result illegal_address = 700;
inline constexpr Result launch_out_of_resources = 701;
inline constexpr Result launch_timeout = 702;
inline constexpr Result misaligned_address = 716;
inline constexpr Result capture_unsupported = 900;
inline constexpr Result capture_invalidated = 901;
inline constexpr Result capture_unmatched = 903;
inline constexpr Result capture_unjoined = 904;
inline constexpr Result capture_isolation = 905;
inline constexpr Result capture_wrong_thread = 908;
inline constexpr Result unknown = 999;

// CUdevice_attribute
inline constexpr int attribute_multiprocessors = 16;
inline constexpr int attribute_unified_addressing = 41;
inline constexpr int attribute_virtual_memory = 102;
inline constexpr int attribute_posix_descriptors = 103;
inline constexpr int attribute_compute_capability_major = 75;
inline constexpr int attribute_compute_capability_minor = 76;

// CUstream_flags
inline constexpr unsigned stream_non_blocking = 1;
// CUstreamCaptureMode, CUstreamCaptureStatus
inline constexpr int capture_global = 0;
inline constexpr int capture_thread_local = 1;
inline constexpr int capture_relaxed = 2;
inline constexpr int capturing_nothing = 0;
inline constexpr int capturing = 1;
inline constexpr int capturing_in_vain = 2;
// CUevent_flags, CUuserObject_flags, CUuserObjectRetain_flags
inline constexpr unsigned event_without_time = 2;
inline constexpr unsigned user_object_unsynchronised = 1;
inline constexpr unsigned user_object_move = 1;
// CUgraphNodeType
inline constexpr int node_kernel = 0;
inline constexpr int node_copy = 1;
inline constexpr int node_memset = 2;
inline constexpr int node_host = 3;
inline constexpr int node_graph = 4;
inline constexpr int node_empty = 5;
inline constexpr int node_allocation = 10;
inline constexpr int node_free = 11;
inline constexpr int node_conditional = 13;
// CUmemAllocationHandleType, CUmemAllocationGranularity_flags, CUipcMem_flags
inline constexpr int handle_posix_descriptor = 1;
inline constexpr int granularity_minimum = 0;
inline constexpr unsigned ipc_lazy_peer_access = 1;
// CUpointer_attribute
inline constexpr int pointer_context = 1;
inline constexpr int pointer_memory_type = 2;
inline constexpr int pointer_device_ordinal = 9;
// Streams that nobody made: the default one, and each thread's own.
inline constexpr std::uintptr_t stream_legacy = 1;
inline constexpr std::uintptr_t stream_per_thread = 2;
// CUjit_option
inline constexpr int jit_error_log_buffer = 5;
inline constexpr int jit_error_log_buffer_bytes = 6;

// EAGLE_CUDA_FUNCTIONS(X): X(name, version that first had this form of it, exported symbol, parameters)
#define EAGLE_CUDA_FUNCTIONS(X)                                                                              \
  X(cuInit, 2000, cuInit, (unsigned flags))                                                                  \
  X(cuDriverGetVersion, 2020, cuDriverGetVersion, (int* version))                                            \
  X(cuGetErrorName, 6000, cuGetErrorName, (Result error, const char** name))                                 \
  X(cuGetErrorString, 6000, cuGetErrorString, (Result error, const char** text))                             \
  X(cuDeviceGetCount, 2000, cuDeviceGetCount, (int* count))                                                  \
  X(cuDeviceGet, 2000, cuDeviceGet, (Device * device, int ordinal))                                          \
  X(cuDeviceGetName, 2000, cuDeviceGetName, (char* name, int bytes, Device device))                          \
  X(cuDeviceGetUuid, 9020, cuDeviceGetUuid, (Uuid * uuid, Device device))                                    \
  X(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2, (std::size_t * bytes, Device device))                       \
  X(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute, (int* value, int attribute, Device device))            \
  X(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain, (Context * context, Device device))            \
  X(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2, (Device device))                         \
  X(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2, (Context context))                                          \
  X(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2, (Context * context))                                          \
  X(cuMemGetInfo, 3020, cuMemGetInfo_v2, (std::size_t * free, std::size_t * total))                          \
  X(cuMemAlloc, 3020, cuMemAlloc_v2, (DevicePointer * pointer, std::size_t bytes))                           \
  X(cuMemFree, 3020, cuMemFree_v2, (DevicePointer pointer))                                                  \
  X(cuMemcpyHtoD, 3020, cuMemcpyHtoD_v2, (DevicePointer to, const void* from, std::size_t bytes))            \
  X(cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2, (void* to, DevicePointer from, std::size_t bytes))                  \
  X(cuMemsetD8, 3020, cuMemsetD8_v2, (DevicePointer to, unsigned char value, std::size_t bytes))             \
  X(cuMemcpy2D, 3020, cuMemcpy2D_v2, (const CopyRows* copy))                                                 \
  X(cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2,                                                     \
    (DevicePointer * base, std::size_t * bytes, DevicePointer pointer))                                      \
  X(cuPointerGetAttribute, 4000, cuPointerGetAttribute, (void* value, int attribute, DevicePointer pointer)) \
  X(cuModuleLoadDataEx, 2010, cuModuleLoadDataEx,                                                            \
    (Module * module, const void* image, unsigned options, int* names, void** values))                       \
  X(cuModuleUnload, 2000, cuModuleUnload, (Module module))                                                   \
  X(cuModuleGetFunction, 2000, cuModuleGetFunction, (Function * function, Module module, const char* name))  \
  X(cuStreamCreate, 2000, cuStreamCreate, (Stream * stream, unsigned flags))                                 \
  X(cuStreamSynchronize, 2000, cuStreamSynchronize, (Stream stream))                                         \
  X(cuCtxSynchronize, 2000, cuCtxSynchronize, ())                                                            \
  X(cuStreamQuery, 2000, cuStreamQuery, (Stream stream))                                                     \
  X(cuStreamDestroy, 4000, cuStreamDestroy_v2, (Stream stream))                                              \
  X(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode, (int* mode))                \
  X(cuLaunchKernel, 4000, cuLaunchKernel,                                                                    \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,                 \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters,            \
     void** extra))

// Of graphs; a driver without them runs kernels one by one. What has the version 10.0 in its name takes the
// KernelNodeParams above, whatever a newer form takes.
#define EAGLE_CUDA_GRAPH_FUNCTIONS(X)                                                                     \
  X(cuGraphCreate, 10000, cuGraphCreate, (Graph * graph, unsigned flags))                                 \
  X(cuGraphDestroy, 10000, cuGraphDestroy, (Graph graph))                                                 \
  X(cuGraphAddKernelNode, 10000, cuGraphAddKernelNode,                                                    \
    (GraphNode * node, Graph graph, const GraphNode* parents, std::size_t count,                          \
     const KernelNodeParams* parameters))                                                                 \
  X(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags,                                      \
    (GraphExec * exec, Graph graph, unsigned long long flags))                                            \
  X(cuGraphKernelNodeSetParams, 10000, cuGraphKernelNodeSetParams,                                        \
    (GraphNode node, const KernelNodeParams* parameters))                                                 \
  X(cuMemsetD8Async, 3020, cuMemsetD8Async,                                                               \
    (DevicePointer to, unsigned char value, std::size_t bytes, Stream stream))                            \
  X(cuGraphExecKernelNodeSetParams, 10010, cuGraphExecKernelNodeSetParams,                                \
    (GraphExec exec, GraphNode node, const KernelNodeParams* parameters))                                 \
  X(cuGraphLaunch, 10000, cuGraphLaunch, (GraphExec exec, Stream stream))                                 \
  X(cuGraphExecDestroy, 10000, cuGraphExecDestroy, (GraphExec exec))                                      \
  /* of what the process's own packages enqueue and capture */                                            \
  X(cuGraphClone, 10000, cuGraphClone, (Graph * clone, Graph graph))                                      \
  X(cuGraphAddChildGraphNode, 10000, cuGraphAddChildGraphNode,                                            \
    (GraphNode * node, Graph graph, const GraphNode* parents, std::size_t count, Graph child))            \
  X(cuGraphGetNodes, 10000, cuGraphGetNodes, (Graph graph, GraphNode * nodes, std::size_t * count))       \
  X(cuGraphNodeGetType, 10000, cuGraphNodeGetType, (GraphNode node, int* type))                           \
  X(cuGraphChildGraphNodeGetGraph, 10000, cuGraphChildGraphNodeGetGraph, (GraphNode node, Graph * graph)) \
  X(cuGraphRetainUserObject, 11030, cuGraphRetainUserObject,                                              \
    (Graph graph, UserObject object, unsigned count, unsigned flags))                                     \
  X(cuUserObjectCreate, 11030, cuUserObjectCreate,                                                        \
    (UserObject * object, void* pointer, HostFunction destroy, unsigned count, unsigned flags))           \
  X(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2, (Stream stream, int mode))                      \
  X(cuStreamEndCapture, 10000, cuStreamEndCapture, (Stream stream, Graph * graph))                        \
  X(cuStreamIsCapturing, 10000, cuStreamIsCapturing, (Stream stream, int* status))                        \
  X(cuStreamWaitEvent, 3020, cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))             \
  X(cuEventCreate, 2000, cuEventCreate, (Event * event, unsigned flags))                                  \
  X(cuEventRecord, 2000, cuEventRecord, (Event event, Stream stream))                                     \
  X(cuEventDestroy, 4000, cuEventDestroy_v2, (Event event))                                               \
  X(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2,                                                        \
    (DevicePointer to, DevicePointer from, std::size_t bytes, Stream stream))

// Of memory that other processes open by a descriptor (virtual memory management, CUDA 10.2).
#define EAGLE_CUDA_DESCRIPTOR_FUNCTIONS(X)                                                          \
  X(cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity,                            \
    (std::size_t * bytes, const AllocationProperties* properties, int which))                       \
  X(cuMemCreate, 10020, cuMemCreate,                                                                \
    (std::uint64_t * handle, std::size_t bytes, const AllocationProperties* properties,             \
     unsigned long long flags))                                                                     \
  X(cuMemRelease, 10020, cuMemRelease, (std::uint64_t handle))                                      \
  X(cuMemAddressReserve, 10020, cuMemAddressReserve,                                                \
    (DevicePointer * pointer, std::size_t bytes, std::size_t alignment, DevicePointer wanted,       \
     unsigned long long flags))                                                                     \
  X(cuMemAddressFree, 10020, cuMemAddressFree, (DevicePointer pointer, std::size_t bytes))          \
  X(cuMemMap, 10020, cuMemMap,                                                                      \
    (DevicePointer pointer, std::size_t bytes, std::size_t offset, std::uint64_t handle,            \
     unsigned long long flags))                                                                     \
  X(cuMemUnmap, 10020, cuMemUnmap, (DevicePointer pointer, std::size_t bytes))                      \
  X(cuMemSetAccess, 10020, cuMemSetAccess,                                                          \
    (DevicePointer pointer, std::size_t bytes, const AccessDescription* access, std::size_t count)) \
  X(cuMemExportToShareableHandle, 10020, cuMemExportToShareableHandle,                              \
    (void* shareable, std::uint64_t handle, int kind, unsigned long long flags))                    \
  X(cuMemImportFromShareableHandle, 10020, cuMemImportFromShareableHandle,                          \
    (std::uint64_t * handle, void* shareable, int kind))

// Of memory that other processes open by 64 bytes, as every driver has it.
#define EAGLE_CUDA_IPC_FUNCTIONS(X)                                                          \
  X(cuIpcGetMemHandle, 4010, cuIpcGetMemHandle, (IpcHandle * handle, DevicePointer pointer)) \
  X(cuIpcOpenMemHandle, 11000, cuIpcOpenMemHandle_v2,                                        \
    (DevicePointer * pointer, IpcHandle handle, unsigned flags))                             \
  X(cuIpcCloseMemHandle, 4010, cuIpcCloseMemHandle, (DevicePointer pointer))

// Of conditional nodes; a driver without them leaves the loops of a graph to the host. `edges` is null.
#define EAGLE_CUDA_CONDITIONAL_FUNCTIONS(X)                                                         \
  X(cuGraphConditionalHandleCreate, 12030, cuGraphConditionalHandleCreate,                          \
    (std::uint64_t * handle, Graph graph, Context context, unsigned value, unsigned flags))         \
  X(cuGraphAddNode, 12030, cuGraphAddNode_v2,                                                       \
    (GraphNode * node, Graph graph, const GraphNode* parents, const void* edges, std::size_t count, \
     ConditionalNodeParams* parameters))
inline constexpr int conditional_version = 12'040;  // of CUDA: bodies may be as ours are

// One address a function; null where the driver lacks it.
struct Functions {
#define EAGLE_CUDA_MEMBER(name, version, symbol, parameters) Result(*name) parameters = nullptr;
  EAGLE_CUDA_FUNCTIONS(EAGLE_CUDA_MEMBER)
  EAGLE_CUDA_GRAPH_FUNCTIONS(EAGLE_CUDA_MEMBER)
  EAGLE_CUDA_CONDITIONAL_FUNCTIONS(EAGLE_CUDA_MEMBER)
  EAGLE_CUDA_DESCRIPTOR_FUNCTIONS(EAGLE_CUDA_MEMBER)
  EAGLE_CUDA_IPC_FUNCTIONS(EAGLE_CUDA_MEMBER)
#undef EAGLE_CUDA_MEMBER
};

// How entry points are asked for by version; drivers for CUDA 11.3 and newer.
using GetProcAddress = Result (*)(const char* symbol, void** function, int version, std::uint64_t flags);

}  // namespace eagle::run::cuda::api

// World: everything that the fake driver holds, and the rules that all its entry points share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "engine/run/cuda/driver_api.h"
#include "tests/fake_cuda/fake_device.h"
#include "tests/fake_cuda/ptx_machine.h"

namespace eagle::run::cuda::api {

struct ContextRecord {
  int ordinal = 0;
  int retained = 0;
  Result lost = success;  // what every call says from now on
  std::uint64_t allocated = 0;
};

struct FunctionRecord {
  ModuleRecord* module = nullptr;
  const fake_cuda::PtxFunction* entry = nullptr;
};

struct ModuleRecord {
  ContextRecord* context = nullptr;
  fake_cuda::PtxProgram program;
  std::vector<std::byte> globals;
  std::map<std::string, FunctionRecord, std::less<>> functions;
};

struct Work {
  FunctionRecord* function = nullptr;
  unsigned blocks = 1, threads = 1;
  std::vector<std::byte> parameters;
};

struct Memset {
  DevicePointer to = 0;
  unsigned char value = 0;
  std::size_t bytes = 0;
};

struct DeviceCopy {
  DevicePointer to = 0, from = 0;
  std::size_t bytes = 0;
};

// From the host: the bytes are the driver's by then.
struct HostCopy {
  DevicePointer to = 0;
  std::vector<std::byte> bytes;
};

struct HostWork {
  HostFunction function = nullptr;
  void* data = nullptr;
};

// Memory that a graph makes or gives back: no graph with it may be a node of another one.
struct GraphMemory {
  bool frees = false;
};

// What a node does, or a stream, in one piece.
using Piece = std::variant<Work, Memset, DeviceCopy, HostCopy, HostWork, GraphMemory>;

// A node that runs a graph, once or for as long as a handle's value is not 0.
struct Conditional {
  std::uint64_t handle = 0;
  int kind = 0;
};

struct GraphNodeRecord {
  GraphRecord* graph = nullptr;  // that it is in
  Piece work;
  std::vector<const GraphNodeRecord*> parents;
  std::unique_ptr<Conditional> conditional;  // around `body`
  std::unique_ptr<GraphRecord> body;         // instead of `work`; without `conditional`: a child graph
};

struct UserObjectRecord {
  void* pointer = nullptr;
  HostFunction destroy = nullptr;
  UserObjectRecord() = default;
  UserObjectRecord(const UserObjectRecord&) = delete;
  UserObjectRecord& operator=(const UserObjectRecord&) = delete;
  ~UserObjectRecord() {
    if (destroy != nullptr) destroy(pointer);
  }
};

struct GraphRecord {
  std::vector<std::unique_ptr<GraphNodeRecord>> nodes;
  std::set<std::uint64_t> handles;  // of conditionals to come
  std::vector<std::shared_ptr<UserObjectRecord>> retained;
};

// Nodes may be changed as long as no launch has a copy.
struct GraphExecRecord {
  struct Node {
    const GraphNodeRecord* made_of = nullptr;
    Piece work;
    std::vector<std::size_t> parents;
    std::unique_ptr<Conditional> conditional;
    std::shared_ptr<const GraphExecRecord> body;

    [[nodiscard]] Node copy() const {
      return {made_of, work, parents, conditional ? std::make_unique<Conditional>(*conditional) : nullptr,
              body};
    }
  };
  std::vector<Node> nodes;
  std::vector<std::shared_ptr<UserObjectRecord>> retained;
  const GraphRecord* made_of = nullptr;
};

// That a stream has come so far.
struct Ticket {
  std::shared_ptr<StreamRecord> stream;
  std::promise<void> promise;
  std::shared_future<void> reached{promise.get_future()};
};
struct Reaches {
  std::shared_ptr<Ticket> ticket;
};
struct WaitsFor {
  std::shared_ptr<Ticket> ticket;
};

// What streams record instead of doing it, from the beginning of one of them on.
struct Capture {
  std::unique_ptr<GraphRecord> graph = std::make_unique<GraphRecord>();
  const StreamRecord* origin = nullptr;
  const ContextRecord* context = nullptr;
  std::thread::id thread;
  int mode = capture_global;
  bool invalid = false;
};
using Frontier = std::vector<const GraphNodeRecord*>;  // behind which what comes next is

struct EventRecord {
  std::shared_ptr<Ticket> ticket;    // of the last time that it was recorded
  std::shared_ptr<Capture> capture;  // where that was part of one
  Frontier behind;
};

using Waiting = std::variant<Piece, Reaches, WaitsFor, std::shared_ptr<const GraphExecRecord>>;

// Begun once somebody waits or asks, on a thread of its own.
struct StreamRecord {
  ContextRecord* context = nullptr;
  std::vector<Waiting> waiting;
  std::shared_ptr<std::promise<void>> running;  // null: nothing is
  std::shared_future<void> ended;
  std::shared_ptr<Capture> capture;  // what is enqueued is recorded there
  Frontier behind;
};

}  // namespace eagle::run::cuda::api

namespace eagle::fake_cuda {

namespace api = run::cuda::api;
using api::Result;

// Memory of a device: a memfd, so that other processes can have it too. With the lock of the world.
class Physical {
public:
  // `context` is charged for as long as anything of this process has it; null: another process made it.
  Physical(int descriptor, std::uint64_t bytes, api::ContextRecord* context);
  ~Physical();
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;
  // Null where the system has none.
  static std::shared_ptr<Physical> create(std::uint64_t bytes, api::ContextRecord& context);
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
  const int descriptor_;
  const std::uint64_t bytes_;
  api::ContextRecord* const context_;
};

// Where some lies in this process's addresses; a page behind it is nobody's.
struct Allocation {
  enum class Kind { allocated, pooled, mapped, opened };
  Kind kind = Kind::allocated;
  std::shared_ptr<Physical> physical;
  std::uint64_t bytes = 0;
  api::ContextRecord* context = nullptr;
  bool accessible = true;
  int opened = 0;               // times
  std::string ipc_handle = {};  // by which it was opened
};

// Everything that the library holds, guarded by one lock: a driver may take turns.
struct World {
  std::recursive_mutex mutex;
  bool initialised = false;
  int gone = 0;  // GPUs that were not there any more when it was: the others have lower numbers
  std::map<int, api::ContextRecord> contexts;
  std::map<std::uint64_t, Allocation> allocations;              // by address
  std::map<std::uint64_t, std::uint64_t> reserved;              // bytes by address
  std::map<std::uint64_t, std::shared_ptr<Physical>> physical;  // by the handle that cuMemCreate gave
  std::uint64_t last_handle = 0;
  std::set<std::unique_ptr<api::ModuleRecord>> modules;
  std::set<std::shared_ptr<api::StreamRecord>> streams;
  std::map<const api::ContextRecord*, std::shared_ptr<api::StreamRecord>> default_streams;
  std::set<std::unique_ptr<api::EventRecord>> events;
  std::set<std::shared_ptr<api::UserObjectRecord>> user_objects;  // that no graph has yet
  std::set<std::shared_ptr<api::Capture>> captures;               // under way
  std::set<std::unique_ptr<api::GraphRecord>> graphs;
  std::set<std::shared_ptr<api::GraphExecRecord>> execs;
  std::map<std::uint64_t, std::uint32_t> conditions;  // values by handle
  std::vector<std::unique_ptr<api::Graph>> bodies;    // arrays of one that were given out
  std::mt19937_64 order{pretence().seed};             // of nodes of graphs
  std::int64_t allocated = 0, launched = 0, loaded = 0, instantiated = 0, changed = 0;
};

World& world();

// Contexts of this thread, the current one last.
std::vector<api::ContextRecord*>& current();

// With the lock, and a context that is well.
Result in_context(const std::function<Result(api::ContextRecord&)>& call);

template <typename Set, typename Record>
auto held(Set& all, const Record* record) {
  return std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.get() == record; });
}

// The allocation that an address lies in, which may be none, and where it begins. With the lock.
const Allocation* allocation_at(std::uint64_t address, api::DevicePointer* begin = nullptr);
// The bytes are those of one allocation.
bool is_there(std::uint64_t address, std::uint64_t bytes);

// ---- libcuda_streams.cpp

// Null for a handle of none; that of the context, for a null handle.
std::shared_ptr<api::StreamRecord> stream_of(api::ContextRecord& context, api::Stream stream);
// Of a capture: the node is added. False: that capture is invalid.
bool enqueue(api::StreamRecord& stream, api::Piece piece);
// Waits for what is in the default stream of the current context.
Result wait_for_default();
// The same of all its streams; those that are captured have nothing.
Result wait_for_all();
// What a driver refuses while something is captured, and the capture with it: a call that could wait for the
// device, from a thread that captures. `frees`: from any. Nothing, from a thread that takes it upon itself.
bool spoils_capture(const api::ContextRecord& context, bool frees = false);

// ---- running.cpp

// A copy of all nodes, with their bodies; null for a graph that may be no node of another.
std::unique_ptr<api::GraphRecord> cloned(const api::GraphRecord& graph);
// A kernel node's work, with a copy of its parameter; false where a driver would not take it.
bool work_of(const api::KernelNodeParams& params, api::Work& work);
// Begins what waits in a stream, unless it is under way; whether something is. A fault stays with the
// context.
bool begin(const std::shared_ptr<api::StreamRecord>& stream);
// A copy that can be launched; what a node's parameters are now is what it keeps.
std::shared_ptr<api::GraphExecRecord> instantiated(const api::GraphRecord& graph);

}  // namespace eagle::fake_cuda

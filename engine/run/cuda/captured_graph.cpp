#include "engine/run/cuda/captured_graph.h"

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace eagle::run::cuda {
namespace {

constexpr const char* way_out =
    "; work that allocates memory or waits for the GPU cannot be captured: allocate before, or give the "
    "callable stream=... or eager=True, and it runs at each launch";

// Its last line: what comes from Python begins with where it was raised.
std::string words_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& raised) {
    std::string text = raised.what();
    while (text.ends_with('\n')) text.pop_back();
    return text.substr(text.rfind('\n') + 1);
  } catch (...) {
    return "an exception";
  }
}

// Of nodes that bodies of conditionals may have; the others run on the host, or wait for what does.
bool runs_on_device(int type) {
  return type == api::node_kernel || type == api::node_copy || type == api::node_memset ||
         type == api::node_graph || type == api::node_empty;
}

}  // namespace

StatusOr<std::shared_ptr<const CapturedGraph>> CapturedGraph::capture(
    const std::shared_ptr<const Device>& device, const std::function<Status(api::Stream)>& enqueue) {
  EAGLE_RETURN_IF_ERROR(device->driver().graphs());
  EAGLE_ASSIGN_OR_RETURN(const auto turn, device->turns().enter());
  const std::shared_ptr<CapturedGraph> made(new CapturedGraph(device));
  // A new one each time: a package's pool of memory has nothing for it, so that its allocations are seen.
  EAGLE_ASSIGN_OR_RETURN(const DeviceStream stream, DeviceStream::create(device));
  Status said;
  std::exception_ptr thrown;
  int state = api::capturing_nothing;
  Status ended;
  {
    const CaptureTurns::Capture under_way(device->turns());
    // Other threads may do what they like meanwhile: the mode is this thread's alone.
    EAGLE_RETURN_IF_ERROR(device->run("cuStreamBeginCapture", [&](const api::Functions& call) {
      return call.cuStreamBeginCapture(stream.handle(), api::capture_thread_local);
    }));
    {
      const Device::Current current(*device);
      try {
        said = enqueue(stream.handle());
      } catch (...) {
        thrown = std::current_exception();
      }
    }
    (void)device->run("cuStreamIsCapturing", [&](const api::Functions& call) {
      return call.cuStreamIsCapturing(stream.handle(), &state);
    });
    ended = device->run("cuStreamEndCapture", [&](const api::Functions& call) {
      return call.cuStreamEndCapture(stream.handle(), &made->graph_);
    });
  }
  const bool went_well = state == api::capturing && ended.ok();
  if (went_well && thrown) std::rethrow_exception(thrown);
  if (went_well && !said.ok()) return said;
  if (!went_well) {
    const std::string why = thrown ? words_of(thrown) : !said.ok() ? said.message() : ended.message();
    return Status(Reason::graph_state, "it cannot be captured as part of a CUDA graph: " + why + way_out);
  }
  EAGLE_RETURN_IF_ERROR(made->look(made->graph_));
  std::size_t nodes = 0;
  EAGLE_RETURN_IF_ERROR(device->run("cuGraphGetNodes", [&](const api::Functions& call) {
    return call.cuGraphGetNodes(made->graph_, nullptr, &nodes);
  }));
  if (nodes == 0) {
    return Status(Reason::graph_state,
                  "it cannot be captured as part of a CUDA graph: it enqueued nothing on the stream that is "
                  "captured (eagle.graph.current_stream()); use that stream, or give the callable eager=True "
                  "and numpy arrays, if its work is the host's");
  }
  return std::shared_ptr<const CapturedGraph>(made);
}

StatusOr<std::shared_ptr<const CapturedGraph>> CapturedGraph::copy_of(
    const std::shared_ptr<const Device>& device, api::Graph original) {
  EAGLE_RETURN_IF_ERROR(device->driver().graphs());
  EAGLE_ASSIGN_OR_RETURN(const auto turn, device->turns().enter());
  const std::shared_ptr<CapturedGraph> made(new CapturedGraph(device));
  EAGLE_RETURN_IF_ERROR(made->look(original));
  EAGLE_RETURN_IF_ERROR(device->run("cuGraphClone", [&](const api::Functions& call) {
    return call.cuGraphClone(&made->graph_, original);
  }));
  EAGLE_RETURN_IF_ERROR(made->watch(original));
  return std::shared_ptr<const CapturedGraph>(made);
}

CapturedGraph::~CapturedGraph() {
  if (graph_ == nullptr) return;
  device_->free("cuGraphDestroy", [&](const api::Functions& call) {
    if (exec_ != nullptr) call.cuGraphExecDestroy(exec_);
    return call.cuGraphDestroy(graph_);
  });
}

// Before the driver would refuse it with a number.
Status CapturedGraph::look(api::Graph graph) {
  std::size_t count = 0;
  const auto list = [&](api::GraphNode* nodes) {
    return device_->run("cuGraphGetNodes", [&](const api::Functions& call) {
      return call.cuGraphGetNodes(graph, nodes, &count);
    });
  };
  EAGLE_RETURN_IF_ERROR(list(nullptr));
  std::vector<api::GraphNode> nodes(count);
  if (count > 0) EAGLE_RETURN_IF_ERROR(list(nodes.data()));
  for (const api::GraphNode node : nodes) {
    int type = 0;
    EAGLE_RETURN_IF_ERROR(device_->run("cuGraphNodeGetType", [&](const api::Functions& call) {
      return call.cuGraphNodeGetType(node, &type);
    }));
    if (type == api::node_allocation || type == api::node_free) {
      return {
          Reason::graph_state,
          std::string("it cannot be part of a CUDA graph: it allocates or frees memory within the graph") +
              way_out};
    }
    if (type == api::node_conditional) {
      return {
          Reason::graph_state,
          "it cannot be part of a CUDA graph: it has a conditional node, and a graph within another may "
          "have none; say the loop in eagle's graph (skippable, repeat_while), or capture its body alone"};
    }
    if (!runs_on_device(type) && fits_in_bodies_.ok()) {
      fits_in_bodies_ =
          Status(Reason::graph_state,
                 "it has a node of CUgraphNodeType " + std::to_string(type) +
                     ", and the body of a conditional may have kernels, copies and fills alone");
    }
    if (type != api::node_graph) continue;
    api::Graph within = nullptr;
    EAGLE_RETURN_IF_ERROR(device_->run("cuGraphChildGraphNodeGetGraph", [&](const api::Functions& call) {
      return call.cuGraphChildGraphNodeGetGraph(node, &within);
    }));
    EAGLE_RETURN_IF_ERROR(look(within));
  }
  return {};
}

// The driver tells when the original goes: its address may be another graph's then. Copies are made before,
// so that they do not hold what tells of it.
Status CapturedGraph::watch(api::Graph original) {
  gone_ = std::make_shared<std::atomic<bool>>(false);
  using Flag = std::shared_ptr<std::atomic<bool>>;
  auto flag = std::make_unique<Flag>(gone_);
  api::UserObject object = nullptr;
  EAGLE_RETURN_IF_ERROR(device_->run("cuUserObjectCreate", [&](const api::Functions& call) {
    return call.cuUserObjectCreate(
        &object, flag.get(),
        [](void* given) {
          const std::unique_ptr<Flag> told(static_cast<Flag*>(given));
          (*told)->store(true);
        },
        1, api::user_object_unsynchronised);
  }));
  (void)flag.release();  // the driver's now
  return device_->run("cuGraphRetainUserObject", [&](const api::Functions& call) {
    return call.cuGraphRetainUserObject(original, object, 1, api::user_object_move);
  });
}

Status CapturedGraph::launch(const DeviceStream& stream) const {
  return device_->run("cuGraphLaunch", [&](const api::Functions& call) {
    if (exec_ == nullptr) {
      const api::Result made = call.cuGraphInstantiateWithFlags(&exec_, graph_, 0);
      if (made != api::success) return made;
    }
    return call.cuGraphLaunch(exec_, stream.handle());
  });
}

Status CapturedGraph::replay() const {
  if (!stream_) {
    EAGLE_ASSIGN_OR_RETURN(stream_, DeviceStream::create(device_));
  }
  EAGLE_RETURN_IF_ERROR(launch(*stream_));
  return stream_->wait();
}

}  // namespace eagle::run::cuda

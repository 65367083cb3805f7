// The entry points of streams: what they do, events between them, and captures of what they are given.
//
// A capture records what is enqueued, each after what its stream had before; another stream joins by waiting
// for an event of one that is captured. As strict as a driver may be: whatever could wait for the device
// spoils the captures of its thread (of all threads, for one that was begun so), and whatever frees memory
// those of every thread, unless the thread answers for what it does; a capture that another stream has not
// come back to is refused when it ends.
#include <algorithm>
#include <cstring>
#include <future>
#include <memory>
#include <set>
#include <utility>

#include "tests/fake_cuda/world.h"

namespace eagle::fake_cuda {

std::shared_ptr<api::StreamRecord> stream_of(api::ContextRecord& context, api::Stream stream) {
  if (stream == nullptr) {
    std::shared_ptr<api::StreamRecord>& made = world().default_streams[&context];
    if (!made) {
      made = std::make_shared<api::StreamRecord>();
      made->context = &context;
    }
    return made;
  }
  const auto found = held(world().streams, stream);
  return found == world().streams.end() ? nullptr : *found;
}

bool enqueue(api::StreamRecord& stream, api::Piece piece) {
  if (!stream.capture) {
    stream.waiting.emplace_back(std::move(piece));
    return true;
  }
  if (stream.capture->invalid) return false;
  auto node = std::make_unique<api::GraphNodeRecord>();
  node->graph = stream.capture->graph.get();
  node->work = std::move(piece);
  node->parents = std::exchange(stream.behind, {node.get()});
  stream.capture->graph->nodes.push_back(std::move(node));
  return true;
}

namespace {

int& capture_mode_of_thread() {
  thread_local int mode = api::capture_global;
  return mode;
}

}  // namespace

bool spoils_capture(const api::ContextRecord& context, bool frees) {
  if (capture_mode_of_thread() == api::capture_relaxed) return false;
  bool spoiled = false;
  for (const auto& capture : world().captures) {
    const bool mine = capture->thread == std::this_thread::get_id() && capture->mode != api::capture_relaxed;
    if (capture->context != &context || (!mine && !frees && capture->mode != api::capture_global)) continue;
    capture->invalid = spoiled = true;
  }
  return spoiled;
}

namespace {

// Of a stream that somebody waits for.
Result refuse_captured(api::StreamRecord& stream) {
  if (!stream.capture) return api::success;
  stream.capture->invalid = true;
  return api::capture_unsupported;
}

// `begun` begins what waits, and says when something of it has ended. What comes meanwhile is waited for as
// well, as little as a driver promises that.
Result wait_until_idle(
    const std::function<Result(api::ContextRecord&, std::shared_future<void>& ended)>& begun) {
  for (;;) {
    std::shared_future<void> ended;
    const Result result = in_context([&](api::ContextRecord& context) { return begun(context, ended); });
    if (result != api::success || !ended.valid()) return result;
    ended.wait();
  }
}

Result wait_for(api::Stream stream) {
  return wait_until_idle([stream](api::ContextRecord& context, std::shared_future<void>& ended) {
    const auto found = stream_of(context, stream);
    if (!found) return api::invalid_handle;
    if (const Result refused = refuse_captured(*found); refused != api::success) return refused;
    if (begin(found)) ended = found->ended;
    return api::success;
  });
}

// Whether what is at the end of one stream comes before what is at the end of another.
bool comes_before(const api::GraphNodeRecord* node, const api::Frontier& later) {
  return std::any_of(later.begin(), later.end(), [&](const api::GraphNodeRecord* one) {
    return one == node || comes_before(node, one->parents);
  });
}

Result enqueued(api::ContextRecord& context, api::Stream stream, api::Piece piece) {
  const auto found = stream_of(context, stream);
  if (!found) return api::invalid_handle;
  return enqueue(*found, std::move(piece)) ? api::success : api::capture_invalidated;
}

}  // namespace

Result wait_for_default() { return wait_for(nullptr); }

Result wait_for_all() {
  return wait_until_idle([](api::ContextRecord& context, std::shared_future<void>& ended) {
    for (const auto& stream : world().streams) {
      if (stream->context == &context && begin(stream)) ended = stream->ended;
    }
    if (const auto own = stream_of(context, nullptr); begin(own)) ended = own->ended;
    return api::success;
  });
}

}  // namespace eagle::fake_cuda

using namespace eagle::fake_cuda;  // NOLINT: the functions below have the driver's names

extern "C" {

Result cuStreamCreate(api::Stream* stream, unsigned flags) {
  return in_context([&](api::ContextRecord& context) {
    if (flags > 1) return api::invalid_value;
    auto record = std::make_shared<api::StreamRecord>();
    record->context = &context;
    *stream = record.get();
    world().streams.insert(std::move(record));
    return api::success;
  });
}

Result cuStreamQuery(api::Stream stream) {
  return in_context([&](api::ContextRecord& context) {
    const auto found = stream_of(context, stream);
    if (!found) return api::invalid_handle;
    if (const Result result = refuse_captured(*found); result != api::success) return result;
    return begin(found) ? api::not_ready : api::success;
  });
}

// Of the current context.
Result cuCtxSynchronize() {
  const Result captured = in_context([](api::ContextRecord& context) {
    bool any = false;
    for (const auto& capture : world().captures) {
      if (capture->context == &context) capture->invalid = any = true;
    }
    return any ? api::capture_unsupported : api::success;
  });
  return captured == api::success ? wait_for_all() : captured;
}

Result cuStreamSynchronize(api::Stream stream) {
  if (stream == nullptr) return wait_for_default();
  // By its other name the default stream is waited for with those that it waits for, and each thread's own
  // may.
  if (reinterpret_cast<std::uintptr_t>(stream) <= api::stream_per_thread) return cuCtxSynchronize();
  return wait_for(stream);
}

Result cuStreamDestroy_v2(api::Stream stream) {
  return in_context([&](api::ContextRecord&) {
    const auto found = held(world().streams, stream);
    if (found == world().streams.end()) return api::invalid_handle;
    static_cast<void>(begin(*found));  // what was enqueued is still done
    world().streams.erase(found);
    return api::success;
  });
}

// ---- what they do

Result cuLaunchKernel(api::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned, api::Stream stream,
                      void** parameters, void** extra) {
  return in_context([&](api::ContextRecord& context) {
    const bool whole =
        grid_x > 0 && grid_y == 1 && grid_z == 1 && block_x > 0 && block_y == 1 && block_z == 1;
    if (!whole || block_x > 1024 || extra != nullptr || parameters == nullptr) return api::invalid_value;
    api::Work work{function, grid_x, block_x, {}};
    work.parameters.resize(function->entry->parameter_bytes);  // of one parameter: its bytes are there now
    std::memcpy(work.parameters.data(), parameters[0], work.parameters.size());
    return enqueued(context, stream, std::move(work));
  });
}

Result cuMemsetD8Async(api::DevicePointer to, unsigned char value, std::size_t bytes, api::Stream stream) {
  return in_context([&](api::ContextRecord& context) {
    if (!is_there(to, bytes)) return api::invalid_value;
    return enqueued(context, stream, api::Memset{to, value, bytes});
  });
}

Result cuMemcpyDtoDAsync_v2(api::DevicePointer to, api::DevicePointer from, std::size_t bytes,
                            api::Stream stream) {
  return in_context([&](api::ContextRecord& context) {
    if (!is_there(to, bytes) || !is_there(from, bytes)) return api::invalid_value;
    return enqueued(context, stream, api::DeviceCopy{to, from, bytes});
  });
}

// The engine does not call it; packages that tests play do.
Result cuLaunchHostFunc(api::Stream stream, api::HostFunction function, void* data) {
  return in_context([&](api::ContextRecord& context) {
    return enqueued(context, stream, api::HostWork{function, data});
  });
}

// ---- events

Result cuEventCreate(api::Event* event, unsigned flags) {
  return in_context([&](api::ContextRecord&) {
    if (flags != api::event_without_time) return api::invalid_value;
    auto record = std::make_unique<api::EventRecord>();
    *event = record.get();
    world().events.insert(std::move(record));
    return api::success;
  });
}

Result cuEventRecord(api::Event event, api::Stream stream) {
  return in_context([&](api::ContextRecord& context) {
    const auto found = stream_of(context, stream);
    if (!found || held(world().events, event) == world().events.end() || found->context != &context)
      return api::invalid_handle;
    event->capture = found->capture;
    event->behind = found->behind;
    event->ticket = nullptr;
    if (found->capture) return found->capture->invalid ? api::capture_invalidated : api::success;
    event->ticket = std::make_shared<api::Ticket>();
    event->ticket->stream = found;
    found->waiting.emplace_back(api::Reaches{event->ticket});
    return api::success;
  });
}

Result cuStreamWaitEvent(api::Stream stream, api::Event event, unsigned flags) {
  return in_context([&](api::ContextRecord& context) {
    const auto found = stream_of(context, stream);
    if (!found || flags != 0 || held(world().events, event) == world().events.end())
      return api::invalid_handle;
    if (event->capture) {
      if (event->capture->invalid) return api::capture_invalidated;
      if (found->capture && found->capture != event->capture) return api::capture_isolation;
      if (!found->capture) found->behind.clear();
      found->capture = event->capture;
      for (const api::GraphNodeRecord* one : event->behind) {
        if (std::find(found->behind.begin(), found->behind.end(), one) == found->behind.end())
          found->behind.push_back(one);
      }
      return api::success;
    }
    if (found->capture) {  // work outside of the capture is nothing that a graph could wait for
      found->capture->invalid = true;
      return api::capture_isolation;
    }
    if (event->ticket) found->waiting.emplace_back(api::WaitsFor{event->ticket});
    return api::success;
  });
}

// Who waits for it already goes on waiting.
Result cuEventDestroy_v2(api::Event event) {
  return in_context([&](api::ContextRecord&) {
    const auto found = held(world().events, event);
    if (found == world().events.end()) return api::invalid_handle;
    world().events.erase(found);
    return api::success;
  });
}

// ---- captures

Result cuThreadExchangeStreamCaptureMode(int* mode) {
  if (mode == nullptr || *mode < api::capture_global || *mode > api::capture_relaxed)
    return api::invalid_value;
  std::swap(*mode, capture_mode_of_thread());
  return api::success;
}

Result cuStreamBeginCapture_v2(api::Stream stream, int mode) {
  return in_context([&](api::ContextRecord& context) {
    const auto found = stream_of(context, stream);
    if (!found || stream == nullptr) return found ? api::capture_unsupported : api::invalid_handle;
    if (found->capture || mode < api::capture_global || mode > api::capture_relaxed)
      return api::invalid_value;
    auto capture = std::make_shared<api::Capture>();
    capture->origin = found.get();
    capture->context = &context;
    capture->thread = std::this_thread::get_id();
    capture->mode = mode;
    world().captures.insert(capture);
    found->capture = std::move(capture);
    found->behind.clear();
    return api::success;
  });
}

Result cuStreamIsCapturing(api::Stream stream, int* status) {
  return in_context([&](api::ContextRecord& context) {
    const auto found = stream_of(context, stream);
    if (!found) return api::invalid_handle;
    *status = !found->capture           ? api::capturing_nothing
              : found->capture->invalid ? api::capturing_in_vain
                                        : api::capturing;
    return api::success;
  });
}

Result cuStreamEndCapture(api::Stream stream, api::Graph* graph) {
  return in_context([&](api::ContextRecord& context) {
    const auto found = stream_of(context, stream);
    *graph = nullptr;
    if (!found) return api::invalid_handle;
    if (!found->capture || found->capture->origin != found.get()) return api::capture_unmatched;
    if (found->capture->mode == api::capture_thread_local &&
        found->capture->thread != std::this_thread::get_id())
      return api::capture_wrong_thread;
    const std::shared_ptr<api::Capture> capture = found->capture;
    const api::Frontier last = found->behind;
    bool joined = true;
    for (const auto& other : world().streams) {
      if (other->capture != capture) continue;
      for (const api::GraphNodeRecord* node : other->behind) joined = joined && comes_before(node, last);
      other->capture = nullptr;
      other->behind.clear();
    }
    world().captures.erase(capture);
    if (capture->invalid) return api::capture_invalidated;
    if (!joined) return api::capture_unjoined;
    *graph = capture->graph.get();
    world().graphs.insert(std::move(capture->graph));
    return api::success;
  });
}
}

// What runs: kernels, graphs of them, and conditionals, once somebody waits.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/fake_cuda/world.h"

namespace eagle::fake_cuda {
namespace {

Result of(PtxFault fault) {
  switch (fault) {
    case PtxFault::illegal_address:
      return api::illegal_address;
    case PtxFault::misaligned_address:
      return api::misaligned_address;
    case PtxFault::out_of_time:
      return api::launch_timeout;
    default:
      return api::success;
  }
}

// Others have the world while a kernel runs: they may tell it to stop.
Result run(api::ContextRecord& context, const api::Work& work) {
  std::unique_lock lock(world().mutex);
  if (context.lost != api::success) return context.lost;
  if (++world().launched == pretence().fail_launch) return context.lost = api::illegal_address;
  std::vector<MemoryRange> memory;
  for (const auto& [begin, allocation] : world().allocations) {
    if (allocation.accessible) memory.push_back({begin, begin + allocation.bytes});
  }
  PtxLaunch launch;
  launch.program = &work.function->module->program;
  launch.entry = work.function->entry;
  launch.globals = work.function->module->globals.data();
  launch.parameters = work.parameters;
  launch.blocks = work.blocks;
  launch.threads = work.threads;
  launch.memory = memory;
  launch.set_conditional = [](std::uint64_t handle, std::uint32_t value) {
    const std::lock_guard alone(world().mutex);
    const auto found = world().conditions.find(handle);
    if (found == world().conditions.end()) return false;
    found->second = value;
    return true;
  };
  launch.seed = pretence().seed + static_cast<std::uint64_t>(world().launched);
  launch.flips_bit = world().launched == pretence().flip_bit;
  lock.unlock();
  const PtxOutcome outcome = run_ptx(launch);
  lock.lock();
  if (outcome.fault != PtxFault::none) std::fprintf(stderr, "fake_cuda: %s\n", outcome.text.c_str());
  if (outcome.fault != PtxFault::none) context.lost = of(outcome.fault);
  return context.lost;
}

Result run(api::ContextRecord& context, const api::Piece& piece) {
  if (const auto* work = std::get_if<api::Work>(&piece)) return run(context, *work);
  if (const auto* host = std::get_if<api::HostWork>(&piece)) {
    host->function(host->data);
    return api::success;
  }
  const std::lock_guard lock(world().mutex);
  if (const auto* set = std::get_if<api::Memset>(&piece)) {
    if (!is_there(set->to, set->bytes)) return context.lost = api::illegal_address;
    std::memset(reinterpret_cast<void*>(set->to), set->value, set->bytes);
  } else if (const auto* copy = std::get_if<api::DeviceCopy>(&piece)) {
    if (!is_there(copy->to, copy->bytes) || !is_there(copy->from, copy->bytes))
      return context.lost = api::illegal_address;
    std::memmove(reinterpret_cast<void*>(copy->to), reinterpret_cast<const void*>(copy->from), copy->bytes);
  } else if (const auto* sent = std::get_if<api::HostCopy>(&piece)) {
    if (!is_there(sent->to, sent->bytes.size())) return context.lost = api::illegal_address;
    std::memcpy(reinterpret_cast<void*>(sent->to), sent->bytes.data(), sent->bytes.size());
  }
  return api::success;
}

Result run(api::ContextRecord& context, const api::GraphExecRecord& exec);

Result run(api::ContextRecord& context, const api::GraphExecRecord::Node& node) {
  if (!node.body) return run(context, node.work);
  if (!node.conditional) return run(context, *node.body);
  const auto holds = [&] {
    const std::lock_guard lock(world().mutex);
    return world().conditions.at(node.conditional->handle) != 0;
  };
  while (holds()) {
    if (const Result result = run(context, *node.body); result != api::success) return result;
    if (node.conditional->kind == api::conditional_if) break;
  }
  return api::success;
}

// All nodes, each after its parents; else in any order.
Result run(api::ContextRecord& context, const api::GraphExecRecord& exec) {
  std::vector<std::size_t> missing(exec.nodes.size());
  std::vector<std::vector<std::size_t>> children(exec.nodes.size());
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < exec.nodes.size(); ++i) {
    missing[i] = exec.nodes[i].parents.size();
    for (const std::size_t parent : exec.nodes[i].parents) children[parent].push_back(i);
    if (missing[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    {
      const std::lock_guard lock(world().mutex);
      std::swap(ready[world().order() % ready.size()], ready.back());
    }
    const std::size_t next = ready.back();
    ready.pop_back();
    if (const Result result = run(context, exec.nodes[next]); result != api::success) return result;
    for (const std::size_t child : children[next]) {
      if (--missing[child] == 0) ready.push_back(child);
    }
  }
  return api::success;
}

// Until the other stream has come so far; it is begun for that.
void wait_for(const api::Ticket& ticket) {
  while (ticket.reached.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    const std::lock_guard lock(world().mutex);
    begin(ticket.stream);
  }
}

Result run(api::ContextRecord& context, const api::Waiting& waiting) {
  if (const auto* piece = std::get_if<api::Piece>(&waiting)) return run(context, *piece);
  if (const auto* reaches = std::get_if<api::Reaches>(&waiting)) {
    reaches->ticket->promise.set_value();
    return api::success;
  }
  if (const auto* waits = std::get_if<api::WaitsFor>(&waiting)) {
    wait_for(*waits->ticket);
    return context.lost;
  }
  return run(context, *std::get<std::shared_ptr<const api::GraphExecRecord>>(waiting));
}

}  // namespace

bool work_of(const api::KernelNodeParams& params, api::Work& work) {
  const bool whole = params.grid_x > 0 && params.grid_y == 1 && params.grid_z == 1 && params.block_x > 0 &&
                     params.block_y == 1 && params.block_z == 1 && params.block_x <= 1024;
  if (!whole || params.function == nullptr || params.parameters == nullptr || params.extra != nullptr)
    return false;
  work = {params.function, params.grid_x, params.block_x, {}};
  work.parameters.resize(params.function->entry->parameter_bytes);
  std::memcpy(work.parameters.data(), params.parameters[0], work.parameters.size());
  return true;
}

bool begin(const std::shared_ptr<api::StreamRecord>& stream) {
  if (stream->running) return true;
  if (stream->waiting.empty()) return false;
  stream->running = std::make_shared<std::promise<void>>();
  stream->ended = stream->running->get_future().share();
  std::thread([stream, all = std::exchange(stream->waiting, {})] {
    bool well = true;
    for (const api::Waiting& one : all) {
      // Who waits for an event of a context that is lost hears of that.
      if (well || std::holds_alternative<api::Reaches>(one))
        well = run(*stream->context, one) == api::success && well;
    }
    const std::lock_guard lock(world().mutex);
    std::exchange(stream->running, nullptr)->set_value();
  }).detach();
  return true;
}

std::unique_ptr<api::GraphRecord> cloned(const api::GraphRecord& graph) {
  auto made = std::make_unique<api::GraphRecord>();
  made->retained = graph.retained;
  for (const auto& node : graph.nodes) {
    if (node->conditional || std::holds_alternative<api::GraphMemory>(node->work)) return nullptr;
    auto copy = std::make_unique<api::GraphNodeRecord>();
    copy->graph = made.get();
    copy->work = node->work;
    for (const api::GraphNodeRecord* parent : node->parents)
      copy->parents.push_back(
          made->nodes[static_cast<std::size_t>(held(graph.nodes, parent) - graph.nodes.begin())].get());
    if (node->body && (copy->body = cloned(*node->body)) == nullptr) return nullptr;
    made->nodes.push_back(std::move(copy));
  }
  return made;
}

std::shared_ptr<api::GraphExecRecord> instantiated(const api::GraphRecord& graph) {
  auto record = std::make_shared<api::GraphExecRecord>();
  record->retained = graph.retained;
  for (const auto& node : graph.nodes) {
    api::GraphExecRecord::Node made{node.get(), node->work, {}, nullptr, nullptr};
    for (const api::GraphNodeRecord* parent : node->parents)
      made.parents.push_back(static_cast<std::size_t>(held(graph.nodes, parent) - graph.nodes.begin()));
    if (node->conditional) made.conditional = std::make_unique<api::Conditional>(*node->conditional);
    if (node->body) made.body = instantiated(*node->body);
    record->nodes.push_back(std::move(made));
  }
  return record;
}

}  // namespace eagle::fake_cuda

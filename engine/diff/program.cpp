#include "engine/diff/program.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "engine/plane/overlap.h"

namespace eagle::diff {

bool is_real(const plane::View& view) {
  return view.dtype == plane::DType::f64 || view.dtype == plane::DType::f32;
}

Program::Program(const graph::Graph& graph) : graph_(graph) {
  for (const auto& kernel : graph.kernels) accesses_.push_back(kernel::accesses(*kernel));
  for (const graph::Stage& stage : graph.stages) walk(stage.branches, true, 0, steps_);
  find_blocks();
  writings_.resize(blocks_.size());
  for_each([&](const Step& step) {
    for (const graph::NamedView& written : step.writes) {
      const std::size_t block = block_of(written.view);
      if (block != no_block) writings_[block].push_back({step.number, written.view});
    }
  });
}

// `since` is 0 outside of loops, else the number of the outermost one and 1.
void Program::walk(const std::vector<graph::Branch>& branches, bool outermost, std::uint32_t since,
                   std::vector<Step>& out) {
  graph::for_each_leaf(std::span(branches),
                       [&](const graph::Node& node) { out.push_back(step(node, outermost, since)); });
}

Step Program::step(const graph::Node& node, bool outermost, std::uint32_t since) {
  Step step;
  step.node = &node;
  step.number = count_++;
  step.leaf = outermost ? leaves_++ : leaves_ - 1;
  const auto* const conditional = step.as<graph::Conditional>();
  const bool loop = step.is_loop();
  step.since = since != 0 ? since - 1 : step.number;
  if (loop) step.loop = loops_++;
  if (const auto* const launch = step.as<graph::KernelLaunch>()) {
    step.launch = launches_++;
    touch(step, accesses_[launch->kernel]);
  } else {
    if (step.as<graph::HostNode>() != nullptr) step.host = hosts_++;
    touch(step, {});
  }
  if (conditional != nullptr) {
    const std::uint32_t within = since != 0 ? since : loop ? step.number + 1 : 0;
    for (const graph::Stage& stage : conditional->body) walk(stage.branches, false, within, step.body);
  }
  return step;
}

void Program::touch(Step& step, const std::vector<kernel::Access>& accesses) const {
  if (const auto* const launch = step.as<graph::KernelLaunch>()) {
    const kernel::Kernel& kernel = *graph_.kernels[launch->kernel];
    for (std::size_t i = 0; i < launch->arguments.size(); ++i) {
      if (!launch->arguments[i].view) continue;
      const graph::NamedView named{kernel.arguments[i].name, *launch->arguments[i].view};
      if (accesses[i].read) step.reads.push_back(named);
      if (accesses[i].written) step.writes.push_back(named);
    }
  } else if (const auto* const host = step.as<graph::HostNode>()) {
    step.reads = host->reads;
    step.writes = host->writes;
    const plane::View cursor{cursors(), static_cast<std::int64_t>(step.host) * 8, plane::DType::i64, 8, {1},
                             {8}};
    step.reads.push_back({"calls", cursor});
    step.writes.push_back({"calls", cursor});
  } else if (const auto* const reduce = step.as<graph::Reduce>()) {
    step.reads.push_back(reduce->x);
    step.writes.push_back(reduce->out);
  } else if (const auto* const copy = step.as<graph::Copy>()) {
    step.reads.push_back({std::string(graph::copy_source_name), copy->source});
    if (copy->index) step.reads.push_back(*copy->index);
    const graph::NamedView destination{std::string(graph::copy_destination_name), copy->destination};
    if (copy->index && copy->into_stack()) step.reads.push_back(destination);
    step.writes.push_back(destination);
  } else if (const auto* const conditional = step.as<graph::Conditional>()) {
    step.reads.push_back(conditional->guard.count);
    if (conditional->guard.baseline) step.reads.push_back(*conditional->guard.baseline);
    if (conditional->iterations) step.writes.push_back(*conditional->iterations);
  }
}

void Program::find_blocks() {
  std::vector<Block> spans;
  for_each([&](const Step& step) {
    for (const auto* const views : {&step.reads, &step.writes}) {
      for (const graph::NamedView& named : *views) {
        const plane::Extent extent = plane::extent(named.view);
        if (extent.first < extent.last) spans.push_back({named.view.plane, extent.first, extent.last});
      }
    }
  });
  std::sort(spans.begin(), spans.end(), [](const Block& a, const Block& b) {
    return std::tie(a.plane, a.first) < std::tie(b.plane, b.first);
  });
  for (const Block& span : spans) {
    if (!blocks_.empty() && blocks_.back().plane == span.plane && span.first < blocks_.back().last) {
      blocks_.back().last = std::max(blocks_.back().last, span.last);
    } else {
      blocks_.push_back(span);
    }
  }
}

std::size_t Program::block_of(const plane::View& view) const {
  const plane::Extent extent = plane::extent(view);
  if (extent.first >= extent.last) return no_block;
  const auto after = std::upper_bound(
      blocks_.begin(), blocks_.end(), std::pair(view.plane, extent.first),
      [](const auto& key, const Block& block) { return key < std::pair(block.plane, block.first); });
  return static_cast<std::size_t>(after - blocks_.begin()) - 1;
}

bool Program::is_scratch(std::size_t block) const {
  const std::uint32_t plane = blocks_[block].plane;
  return plane < graph_.planes.size() && graph_.planes[plane].scratch;
}

bool Program::intact(const plane::View& view, const Step& step) const {
  const std::size_t block = block_of(view);
  if (block == no_block) return true;
  if (is_scratch(block)) return false;
  return std::none_of(writings_[block].begin(), writings_[block].end(), [&](const Writing& writing) {
    return writing.number >= step.since && plane::overlap(writing.view, view).overlaps;
  });
}

void Program::for_each(const std::function<void(const Step&)>& visit) const { for_each(steps_, visit); }

void Program::for_each(std::span<const Step> steps, const std::function<void(const Step&)>& visit) {
  for (const Step& step : steps) {
    visit(step);
    for_each(step.body, visit);
  }
}

}  // namespace eagle::diff

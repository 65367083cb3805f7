#include "engine/step/result_message.h"

#include <cstring>
#include <string>

#include "eagle/v1/run.pb.h"
#include "engine/run/report_message.h"

namespace eagle::step {
namespace {

void describe(const ShardReduction& reduction, v1::ShardReduction& out) {
  out.set_launch(reduction.launch);
  out.set_argument(reduction.argument);
  out.set_op(static_cast<v1::ReduceOp>(reduction.op));
  out.set_scalar(static_cast<v1::ScalarType>(reduction.scalar));
  for (const run::Partial::Node& node : reduction.nodes) {
    v1::ShardReduction::Node& entry = *out.add_nodes();
    entry.set_index(node.index);
    entry.set_level(node.level);
    entry.set_value(node.value.bytes, sizeof node.value.bytes);
  }
}

StatusOr<ShardReduction> reduction_of(const v1::ShardReduction& said) {
  ShardReduction reduction{said.launch(),
                           said.argument(),
                           static_cast<kernel::ReduceOp>(said.op()),
                           static_cast<kernel::Scalar>(said.scalar()),
                           {}};
  const bool known = said.op() >= v1::REDUCE_SUM && said.op() <= v1::REDUCE_ANY && said.scalar() >= v1::F64 &&
                     said.scalar() <= v1::BOOL;
  if (!known || !kernel::can_reduce(reduction.op, reduction.scalar))
    return Status(Reason::bad_message, "the result of a run has a reduction of no known kind");
  for (const v1::ShardReduction::Node& entry : said.nodes()) {
    run::Partial::Node node{entry.index(), entry.level(), {}};
    if (entry.value().size() != sizeof node.value.bytes)
      return Status(Reason::bad_message, "the result of a run has a reduction without its value");
    std::memcpy(node.value.bytes, entry.value().data(), sizeof node.value.bytes);
    reduction.nodes.push_back(node);
  }
  return reduction;
}

}  // namespace

void describe(const RunResult& result, v1::RunResult& message) {
  const RunReport& report = result.report;
  message.set_status(static_cast<v1::RunStatus>(result.status));
  v1::RunReport& out = *message.mutable_report();
  run::describe(report.host, *out.mutable_host());
  out.set_samples(report.samples);
  out.set_finished(report.finished);
  out.set_launches(report.launches);
  out.set_steps(report.steps);
  out.set_threads(report.threads);
  out.set_build_s(report.build_s);
  out.set_wall_s(report.wall_s);
  out.set_compiled(report.compiled);
  for (const std::string& kernel : report.kernels) out.add_kernels(kernel);
  run::describe(report.counts, *out.mutable_counts());
  out.set_mode(report.mode);
  out.set_fused_steps(report.fused_steps);
  out.set_records(report.records);
  out.set_compactions(report.compactions);
  for (const GroupReport& group : report.dispatch) {
    v1::DispatchReport& entry = *out.add_dispatch();
    entry.set_group(group.group);
    entry.set_policy(static_cast<v1::DispatchPolicy>(group.policy));
    entry.mutable_counts()->Add(group.counts.begin(), group.counts.end());
    entry.set_gain(group.gain);
    entry.set_measured_gain(group.measured_gain);
  }
  for (const StepRange& range : report.ranges) {
    v1::StepRange& entry = *out.add_ranges();
    entry.set_end(range.end);
    entry.set_steps(range.steps);
  }
  if (report.shard) {
    out.mutable_shard()->set_base(report.shard->base);
    out.mutable_shard()->set_count(report.shard->count);
    out.mutable_shard()->set_of(report.shard->of);
  }
  for (const ShardReduction& reduction : report.reductions) describe(reduction, *out.add_reductions());
  out.set_backend(report.backend);
  out.set_schedule(report.schedule);
}

StatusOr<RunResult> result_of(const v1::RunResult& message) {
  if (message.status() < v1::FINISHED || message.status() > v1::DEADLINE) {
    return Status(Reason::bad_message, "the daemon's result of a run has no known status");
  }
  const v1::RunReport& said = message.report();
  RunResult result;
  result.status = static_cast<RunStatus>(message.status());
  result.report = {run::host_of(said.host()),
                   said.samples(),
                   said.finished(),
                   said.launches(),
                   said.steps(),
                   said.threads(),
                   run::counts_of(said.counts()),
                   said.build_s(),
                   said.wall_s(),
                   said.compiled(),
                   {said.kernels().begin(), said.kernels().end()},
                   said.mode(),
                   said.fused_steps(),
                   said.records(),
                   said.compactions(),
                   {},
                   {},
                   std::nullopt,
                   {},
                   said.backend().empty() ? "cpu" : said.backend(),
                   said.schedule()};
  for (const v1::DispatchReport& group : said.dispatch()) {
    result.report.dispatch.push_back({group.group(),
                                      static_cast<kernel::DispatchPolicy>(group.policy()),
                                      {group.counts().begin(), group.counts().end()},
                                      group.gain(),
                                      group.measured_gain()});
  }
  for (const v1::StepRange& range : said.ranges())
    result.report.ranges.push_back({range.end(), range.steps()});
  if (said.has_shard())
    result.report.shard = Shard{said.shard().base(), said.shard().count(), said.shard().of()};
  for (const v1::ShardReduction& reduction : said.reductions()) {
    EAGLE_ASSIGN_OR_RETURN(ShardReduction read, reduction_of(reduction));
    result.report.reductions.push_back(std::move(read));
  }
  return result;
}

}  // namespace eagle::step

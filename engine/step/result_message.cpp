#include "engine/step/result_message.h"

#include <string>

#include "eagle/v1/run.pb.h"
#include "engine/run/report_message.h"

namespace eagle::step {

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
                   {}};
  for (const v1::DispatchReport& group : said.dispatch()) {
    result.report.dispatch.push_back({group.group(),
                                      static_cast<kernel::DispatchPolicy>(group.policy()),
                                      {group.counts().begin(), group.counts().end()},
                                      group.gain(),
                                      group.measured_gain()});
  }
  return result;
}

}  // namespace eagle::step

#include "engine/diff/record.h"

#include <algorithm>

#include "eagle/v1/graph.pb.h"
#include "engine/diff/activity.h"
#include "engine/diff/emit.h"
#include "engine/diff/names.h"
#include "engine/diff/needs.h"
#include "engine/graph/wire.h"

namespace eagle::diff {
namespace {

void write(const plane::View& view, v1::View& message) {
  graph::to_message(view, message);
  message.set_plane(view.plane);
}

}  // namespace

const Kept* Record::find(std::size_t block) const {
  const auto found =
      std::find_if(kept.begin(), kept.end(), [&](const Kept& one) { return one.block == block; });
  return found == kept.end() ? nullptr : &*found;
}

StatusOr<Record> plan_record(const Program& program) {
  std::vector<Place> inputs;
  std::vector<ParamPlace> params;
  for (const Wanted& wanted : all_inputs(program)) {
    if (wanted.plane) inputs.push_back(*wanted.plane);
    params.insert(params.end(), wanted.params.begin(), wanted.params.end());
  }
  std::vector<std::uint32_t> launches;
  for (const ParamPlace& param : params) launches.push_back(param.launch);
  std::vector<Place> seeds;
  program.for_each([&](const Step& step) {
    for (const graph::NamedView& read : step.reads) {  // a value in the middle may be asked about, too
      if (is_real(read.view)) inputs.push_back({step.leaf, read.view});
    }
    for (const graph::NamedView& written : step.writes) {
      if (is_real(written.view)) seeds.push_back({step.leaf, written.view});
    }
  });
  const Activity activity = find_activity(program, inputs, launches, seeds);
  EAGLE_ASSIGN_OR_RETURN(const Needs needs, find_needs(program, activity, params, Unknown::taken_for_all));

  Record record;
  for (const std::size_t block : needs.restored) {
    if (program.is_cursor(block)) continue;
    const Block& bytes = program.blocks()[block];
    const std::int64_t aligned = (record.bytes + 63) / 64 * 64 + bytes.first % 64;
    record.kept.push_back({block, aligned});
    record.bytes = aligned + bytes.bytes();
  }
  record.calls.resize(program.hosts());
  for (std::size_t i = 0; i < program.steps().size(); ++i) {
    const Step& outer = program.steps()[i];
    Program::for_each(std::span(&outer, 1), [&](const Step& step) {
      const auto* const host = step.as<graph::HostNode>();
      if (host == nullptr) return;
      KeptCalls& calls = record.calls[step.host];
      for (const graph::NamedView& read : host->reads)
        calls.reads.push_back(!program.intact(read.view, step));
      calls.writes = !host->writes.empty() && (&step != &outer || needs.again[i]);
    });
  }
  return record;
}

std::uint32_t add_copies(const Program& program, const Record& record, std::uint32_t plane,
                         v1::GraphDescription& description) {
  if (record.kept.empty()) return 0;
  v1::Stage stage;
  for (const Kept& kept : record.kept) {
    v1::Node& node =
        record.kept.size() == 1 ? *stage.mutable_node() : *stage.mutable_group()->add_branches()->add_nodes();
    node.set_name("record");
    const plane::View from = bytes_of(program.blocks()[kept.block]);
    plane::View to = from;
    to.plane = plane;
    to.offset = kept.offset;
    write(from, *node.mutable_copy()->mutable_source());
    write(to, *node.mutable_copy()->mutable_destination());
  }
  google::protobuf::RepeatedPtrField<v1::Stage> stages;
  stages.Add(std::move(stage));
  stages.MergeFrom(description.stages());
  description.mutable_stages()->Swap(&stages);
  return static_cast<std::uint32_t>(record.kept.size());
}

}  // namespace eagle::diff

#include "server/graph_records.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <utility>

#include "eagle/v1/graph.pb.h"
#include "eagle/v1/service.pb.h"
#include "eagle/v1/state.pb.h"
#include "engine/graph/address.h"
#include "server/fault_point.h"
#include "server/secret.h"

namespace eagle::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::internal::WireFormatLite;

// The numbers of Params in `to` become those in `from`; both describe the same graph over different planes.
void copy_params(const Message& from, Message& to) {
  if (from.GetDescriptor() == v1::ParamValue::descriptor()) return to.CopyFrom(from);
  const Reflection& read = *from.GetReflection();
  const Reflection& write = *to.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  read.ListFields(from, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (write.HasField(to, field))
        copy_params(read.GetMessage(from, field), *write.MutableMessage(&to, field));
      continue;
    }
    const int count = std::min(read.FieldSize(from, field), write.FieldSize(to, field));
    for (int i = 0; i < count; ++i) {
      copy_params(read.GetRepeatedMessage(from, field, i), *write.MutableRepeatedMessage(&to, field, i));
    }
  }
}

std::uint64_t bytes_of(const Message& record) {
  return copies_of_records * std::uint64_t{record.ByteSizeLong()};
}

std::uint64_t bytes_of_graph(const std::string& record, std::uint32_t nodes) {
  return GraphRecords::bytes_a_graph + GraphRecords::bytes_a_node * std::uint64_t{nodes} +
         GraphRecords::bytes_a_described_byte * record.size();
}

// A GraphRecord. Not by way of a message: that would be a copy of the description, and a large one.
std::string graph_record_text(std::string_view described, std::uint32_t nodes) {
  std::string record;
  {
    google::protobuf::io::StringOutputStream text(&record);
    google::protobuf::io::CodedOutputStream out(&text);
    WireFormatLite::WriteTag(v1::GraphRecord::kDescriptionFieldNumber,
                             WireFormatLite::WIRETYPE_LENGTH_DELIMITED, &out);
    out.WriteVarint32(static_cast<std::uint32_t>(described.size()));
    out.WriteRaw(described.data(), static_cast<int>(described.size()));
  }
  v1::GraphRecord others;
  others.set_nodes(nodes);
  return record + others.SerializeAsString();
}

v1::GraphRecord read_graph_record(const std::string& record) {
  v1::GraphRecord message;
  static_cast<void>(message.ParseFromString(record));  // which was written here, or has been read before
  return message;
}

bool same(const v1::ArgumentName& a, const v1::ArgumentName& b) {
  return a.name() == b.name() && a.node() == b.node() && a.has_leaf() == b.has_leaf() && a.leaf() == b.leaf();
}

void drop_history(v1::ParamsRecord& record) {
  std::map<std::string, int> last;
  for (int i = 0; i < record.params_size(); ++i) last[record.params(i).argument().SerializeAsString()] = i;
  if (last.size() == static_cast<std::size_t>(record.params_size())) return;
  v1::ParamsRecord kept;
  for (int i = 0; i < record.params_size(); ++i) {
    if (last.at(record.params(i).argument().SerializeAsString()) == i) *kept.add_params() = record.params(i);
  }
  record.Swap(&kept);
}

// Of several numbers for one address the last one is left, in its place: addresses may mean the same
// argument. A few cost a look at what is there, and many one index.
void merge(const google::protobuf::RepeatedPtrField<v1::ParamUpdate>& more, v1::ParamsRecord& record) {
  constexpr int few = 16;
  auto& params = *record.mutable_params();
  if (more.size() > few) {
    params.MergeFrom(more);
    return drop_history(record);
  }
  for (const v1::ParamUpdate& update : more) {
    const auto known = std::find_if(params.begin(), params.end(), [&](const v1::ParamUpdate& one) {
      return same(one.argument(), update.argument());
    });
    if (known != params.end()) params.erase(known);
    *params.Add() = update;
  }
}

}  // namespace

GraphHash hash_of(const v1::GraphDescription& description, const std::string& tenant) {
  return hash_of(description.SerializeAsString(), tenant);
}

GraphHash hash_of(std::string_view described, const std::string& tenant) {
  // No name of a tenant goes on as a description begins: the zero ends it.
  std::string text;
  text.reserve(tenant.size() + 1 + described.size());
  text = tenant + '\0';
  google::protobuf::io::CodedInputStream fields(reinterpret_cast<const std::uint8_t*>(described.data()),
                                                static_cast<int>(described.size()));
  for (int begin = 0;;) {
    const std::uint32_t tag = fields.ReadTag();
    if (tag == 0 || !WireFormatLite::SkipField(&fields, tag)) break;
    const int end = fields.CurrentPosition();
    if (WireFormatLite::GetTagFieldNumber(tag) != v1::GraphDescription::kPlanesFieldNumber)
      text.append(described.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    begin = end;
  }
  const Digest digest = digest_of({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  GraphHash hash;
  std::copy_n(digest.begin(), hash.size(), hash.begin());
  return hash;
}

template <typename Message>
StatusOr<std::vector<graph::ParamUpdate>> updates_of(const Message& message_of_params) {
  std::vector<graph::ParamUpdate> updates;
  for (const v1::ParamUpdate& message : message_of_params.params()) {
    EAGLE_ASSIGN_OR_RETURN(graph::ParamUpdate one, graph::read_update(message));
    updates.push_back(std::move(one));
  }
  return updates;
}

template StatusOr<std::vector<graph::ParamUpdate>> updates_of(const v1::UpdateRequest&);
template StatusOr<std::vector<graph::ParamUpdate>> updates_of(const v1::ParamsRecord&);

GraphRecords::GraphRecords(StateLog* log, std::uint64_t session, PlaneBudget& budget,
                           std::shared_ptr<Tenant> tenant)
    : log_(log), session_(session), budget_(budget), tenant_(std::move(tenant)) {}
GraphRecords::~GraphRecords() = default;

Status GraphRecords::charge(Costs& costs, std::uint64_t bytes) {
  if (bytes <= costs.charged) return {};
  EAGLE_ASSIGN_OR_RETURN(
      auto more, hold_bytes(budget_, tenant_.get(), "the description of a graph", bytes - costs.charged));
  costs.charged = bytes;
  costs.kept.add(std::move(more));
  return {};
}

void GraphRecords::charge_restored(Costs& costs, std::uint64_t bytes) {
  costs.charged += bytes;
  costs.kept.add(adopt_bytes(budget_, tenant_.get(), bytes));
}

Status GraphRecords::write(StateKind kind, std::uint64_t graph, std::string record) {
  if (log_ == nullptr) return {};
  StateChange change;
  change.key = {session_, kind, graph};
  change.value = std::move(record);
  return log_->write({&change, 1});
}

Status GraphRecords::built(std::uint64_t graph, std::string_view described, std::uint32_t nodes) {
  std::string record = graph_record_text(described, nodes);
  const std::lock_guard lock(mutex_);
  Costs costs;
  costs.graph = bytes_of_graph(record, nodes);
  EAGLE_RETURN_IF_ERROR(charge(costs, costs.graph));
  costs_[graph] = std::move(costs);
  fault_point("graph.build.before");
  EAGLE_RETURN_IF_ERROR(write(StateKind::graph, graph, record));
  fault_point("graph.build.after");
  records_[graph] = {std::move(record), std::make_shared<v1::ParamsRecord>()};
  return {};
}

Status GraphRecords::reserve(std::uint64_t graph, const v1::UpdateRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto known = costs_.find(graph);
  if (known == costs_.end()) return {};  // released meanwhile
  Costs& costs = known->second;
  return charge(costs, costs.graph + costs.params + bytes_of(request));
}

Status GraphRecords::updated(std::uint64_t graph, const v1::UpdateRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(graph);
  if (found == records_.end()) return {};  // released meanwhile
  // `find` hands out copies, so this one is nobody else's; where it need not be written down, an update costs
  // what it changes.
  auto record = std::const_pointer_cast<v1::ParamsRecord>(found->second.params);
  if (log_ != nullptr) record = std::make_shared<v1::ParamsRecord>(*record);
  merge(request.params(), *record);
  costs_[graph].params = bytes_of(*record);  // no more than was reserved
  fault_point("graph.update.before");
  EAGLE_RETURN_IF_ERROR(write(StateKind::params, graph, record->SerializeAsString()));
  fault_point("graph.update.after");
  found->second.params = std::move(record);
  return {};
}

Status GraphRecords::rebound(std::uint64_t graph, const v1::GraphDescription& description) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(graph);
  if (found == records_.end()) return {};  // released meanwhile
  const v1::GraphRecord before = read_graph_record(found->second.graph);
  v1::GraphDescription after = description;
  copy_params(before.description(), after);
  std::string record = graph_record_text(after.SerializeAsString(), before.nodes());
  Costs& costs = costs_[graph];
  const std::uint64_t bytes = bytes_of_graph(record, before.nodes());
  EAGLE_RETURN_IF_ERROR(charge(costs, bytes + costs.params));
  costs.graph = bytes;
  fault_point("graph.rebind.before");
  EAGLE_RETURN_IF_ERROR(write(StateKind::graph, graph, record));
  fault_point("graph.rebind.after");
  found->second.graph = std::move(record);
  return {};
}

Status GraphRecords::released(std::uint64_t graph) {
  const std::lock_guard lock(mutex_);
  costs_.erase(graph);
  records_.erase(graph);
  if (log_ == nullptr) return {};
  std::vector<StateChange> changes(2);
  changes[0].key = {session_, StateKind::graph, graph};
  changes[1].key = {session_, StateKind::params, graph};
  for (StateChange& change : changes) change.gone = true;
  fault_point("graph.release.before");
  EAGLE_RETURN_IF_ERROR(log_->write(changes));
  fault_point("graph.release.after");
  return {};
}

// Entries come in the order of their keys: a graph before its numbers.
Status GraphRecords::restored(const StateKey& key, const std::string& text) {
  v1::GraphRecord graph;
  auto params = std::make_shared<v1::ParamsRecord>();
  const bool is_graph = key.kind == StateKind::graph;
  if (!(is_graph ? graph.ParseFromString(text) : params->ParseFromString(text))) {
    return {Reason::bad_message, "the record of graph " + std::to_string(key.id) + " is none"};
  }
  const std::lock_guard lock(mutex_);
  if (is_graph) {
    Costs& costs = costs_[key.id];
    charge_restored(costs, costs.graph = bytes_of_graph(text, graph.nodes()));
    records_[key.id] = {text, std::move(params)};
  } else if (const auto found = records_.find(key.id); found != records_.end()) {
    Costs& costs = costs_[key.id];
    charge_restored(costs, costs.params = bytes_of(*params));
    found->second.params = std::move(params);
  }
  return {};
}

StatusOr<GraphRecords::Record> GraphRecords::find(std::uint64_t graph) const {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(graph);
  if (found != records_.end()) {
    return Record{std::make_shared<v1::GraphRecord>(read_graph_record(found->second.graph)),
                  std::make_shared<v1::ParamsRecord>(*found->second.params)};
  }
  return Status(Reason::unknown_graph,
                "no graph " + std::to_string(graph) + " in this session: it was released, or never built");
}

}  // namespace eagle::server

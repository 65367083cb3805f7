#include "server/gpu_faults.h"

#include "eagle/v1/service.pb.h"

namespace eagle::server {

Status GpuFaults::restore(std::uint64_t id, const std::string& record) {
  const auto fault = std::make_shared<v1::GpuFault>();
  if (!fault->ParseFromString(record)) return {Reason::bad_message, "the record of a GPU's fault is none"};
  const std::lock_guard lock(mutex_);
  last_ = id;
  faults_.emplace_back(id, fault);
  return {};
}

Status GpuFaults::add(const v1::GpuFault& fault) {
  const std::lock_guard lock(mutex_);
  faults_.emplace_back(++last_, std::make_shared<const v1::GpuFault>(fault));
  std::vector<StateChange> changes(1);
  changes[0].key = {0, StateKind::gpu_fault, last_};
  changes[0].value = fault.SerializeAsString();
  if (faults_.size() > most) {
    changes.push_back({{0, StateKind::gpu_fault, faults_.front().first}, true, {}, -1});
    faults_.pop_front();
  }
  return log_ == nullptr ? Status() : log_->write(changes);
}

std::vector<GpuFaults::Fault> GpuFaults::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Fault> all;
  for (const auto& [id, fault] : faults_) all.push_back(fault);
  return all;
}

}  // namespace eagle::server

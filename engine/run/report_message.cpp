#include "engine/run/report_message.h"

#include "eagle/v1/run.pb.h"

namespace eagle::run {

void describe(const HostIdentity& host, v1::HostInfo& message) {
  message.set_pid(host.pid);
  message.set_host_name(host.host_name);
}

HostIdentity host_of(const v1::HostInfo& message) { return {message.pid(), message.host_name()}; }

void describe(const KernelCounts& counts, v1::KernelCounts& message) {
  message.set_clamped(counts.clamped);
  message.set_zero_divisions(counts.zero_divisions);
  message.set_dropped(counts.dropped);
}

KernelCounts counts_of(const v1::KernelCounts& message) {
  return {message.clamped(), message.zero_divisions(), message.dropped(), 0};
}

}  // namespace eagle::run

// What reports say of who ran and what was put right, as messages, and back.
#pragma once

#include "engine/run/host.h"
#include "engine/run/kernel_counts.h"

namespace eagle::v1 {
class HostInfo;
class KernelCounts;
}  // namespace eagle::v1

namespace eagle::run {

void describe(const HostIdentity& host, v1::HostInfo& message);
HostIdentity host_of(const v1::HostInfo& message);

// `cut_short` stays behind: it is the engine's own.
void describe(const KernelCounts& counts, v1::KernelCounts& message);
KernelCounts counts_of(const v1::KernelCounts& message);

}  // namespace eagle::run

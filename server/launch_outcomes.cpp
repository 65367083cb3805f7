#include "server/launch_outcomes.h"

#include <algorithm>
#include <string>
#include <utility>

namespace eagle::server {
namespace {

std::size_t size_of(const LaunchOutcome& outcome) {
  return outcome.ok() ? outcome->iterations.size() * sizeof(std::int64_t) : outcome.status().message().size();
}

}  // namespace

StatusOr<LaunchOutcomes::Admission> LaunchOutcomes::admit(const LaunchRequest& request, Receiver receiver) {
  std::optional<LaunchOutcome> known;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(request.launch_id);
    if (found == entries_.end()) {
      if (request.launch_id <= lost_through_) {
        return Status(
            Reason::worker_restarted,
            "launch " + std::to_string(request.launch_id) +
                " was given to a worker that has died since: it may have run in part, and is not run "
                "again; look at the arrays, and launch anew");
      }
      if (request.launch_id <= forgotten_through_) {
        return Status(Reason::outcome_forgotten,
                      "launch " + std::to_string(request.launch_id) +
                          " is older than the outcomes that the daemon keeps, the last " +
                          std::to_string(limits_.outcomes) +
                          " of a session (outcomes): it may have run; use a new, larger id to run it");
      }
      entries_[request.launch_id] = Entry{request, {std::move(receiver)}, std::nullopt};
      return Admission::first;
    }
    Entry& entry = found->second;
    if (!(entry.request == request)) {
      return Status(Reason::bad_value,
                    "launch " + std::to_string(request.launch_id) + " was graph " +
                        std::to_string(entry.request.graph) + " " + std::to_string(entry.request.count) +
                        " times, now graph " + std::to_string(request.graph) + " " +
                        std::to_string(request.count) + " times; give each launch an id of its own");
    }
    if (!entry.outcome) {
      entry.receivers.push_back(std::move(receiver));
      return Admission::again;
    }
    known = entry.outcome;
  }
  receiver(*known);
  return Admission::again;
}

void LaunchOutcomes::lost_through(std::uint64_t launch_id) {
  const std::lock_guard lock(mutex_);
  lost_through_ = std::max(lost_through_, launch_id);
}

void LaunchOutcomes::settle(std::uint64_t launch_id, const LaunchOutcome& outcome, bool ran) {
  std::vector<Receiver> receivers;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(launch_id);
    if (found == entries_.end()) return;
    receivers.swap(found->second.receivers);
    if (ran) {
      found->second.outcome = outcome;
      ++settled_;
      bytes_ += size_of(outcome);
    } else {
      entries_.erase(found);
    }
    while (settled_ > limits_.outcomes || bytes_ > limits_.outcome_bytes) forget_oldest();
  }
  for (const Receiver& receiver : receivers) receiver(outcome);
}

void LaunchOutcomes::forget_oldest() {
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!entry->second.outcome) continue;  // still running
    forgotten_through_ = std::max(forgotten_through_, entry->first);
    bytes_ -= size_of(*entry->second.outcome);
    --settled_;
    entries_.erase(entry);
    return;
  }
}

}  // namespace eagle::server

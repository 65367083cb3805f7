#include "server/launch_outcomes.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace eagle::server {
namespace {

std::size_t size_of(const LaunchOutcome& outcome) {
  return outcome.ok() ? outcome->iterations.size() * sizeof(std::int64_t) : outcome.status().message().size();
}

}  // namespace

StatusOr<LaunchOutcomes::Admission> LaunchOutcomes::admit(const LaunchRequest& request, Receiver receiver,
                                                          bool asked_for_later) {
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
      if (!take_unused(request.launch_id)) {
        return Status(Reason::outcome_forgotten,
                      "launch " + std::to_string(request.launch_id) +
                          " is older than the outcomes that the daemon keeps, the last " +
                          std::to_string(limits_.outcomes) +
                          " of a session (outcomes): it may have run; use a new, larger id to run it");
      }
      entries_[request.launch_id] = Entry{request, {std::move(receiver)}, std::nullopt, asked_for_later};
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
      entry.awaited |= asked_for_later;
      if (asked_for_later) return Admission::again;
      if (entry.receivers.size() >= limits_.launch_waiters) {
        return Status(Reason::quota, "launch " + std::to_string(request.launch_id) + " is waited for by " +
                                         std::to_string(limits_.launch_waiters) +
                                         " calls already, which is the limit (launch_waiters)");
      }
      entry.receivers.push_back(std::move(receiver));
      return Admission::again;
    }
    known = entry.outcome;
    if (!asked_for_later && std::exchange(entry.awaited, false)) {
      awaited_.erase(request.launch_id);
      keep(found);
    }
  }
  receiver(*known);
  return Admission::again;
}

void LaunchOutcomes::lost_through(std::uint64_t launch_id) {
  const std::lock_guard lock(mutex_);
  lost_through_ = std::max(lost_through_, launch_id);
  highest_ = std::max(highest_, launch_id);
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
      bytes_ += size_of(outcome);
      keep(found);
    } else {
      entries_.erase(found);
      add_unused(launch_id, launch_id);
    }
  }
  for (const Receiver& receiver : receivers) receiver(outcome);
}

// Those that somebody is to ask for last longest.
void LaunchOutcomes::keep(Entries::iterator settled) {
  if (settled->second.awaited) {
    awaited_.insert(settled->first);
  } else {
    settled_.push_back(settled->first);
  }
  while (!settled_.empty() && (settled_.size() > limits_.outcomes || bytes_ > limits_.outcome_bytes)) {
    forget(settled_.front());
    settled_.pop_front();
  }
  while (!awaited_.empty() && (awaited_.size() > limits_.outcomes || bytes_ > limits_.outcome_bytes)) {
    forget(*awaited_.begin());
    awaited_.erase(awaited_.begin());
  }
}

void LaunchOutcomes::forget(std::uint64_t launch_id) {
  const auto entry = entries_.find(launch_id);
  bytes_ -= size_of(*entry->second.outcome);
  entries_.erase(entry);
}

bool LaunchOutcomes::take_unused(std::uint64_t launch_id) {
  if (launch_id > highest_) {
    if (launch_id - highest_ > 1) add_unused(highest_ + 1, launch_id - 1);
    highest_ = launch_id;
    return true;
  }
  const auto after = unused_.upper_bound(launch_id);
  if (after == unused_.begin()) return false;
  const auto [first, last] = *std::prev(after);
  if (launch_id > last) return false;
  unused_.erase(std::prev(after));
  if (launch_id < last) add_unused(launch_id + 1, last);
  if (first < launch_id) add_unused(first, launch_id - 1);
  return true;
}

// A client's ids may have gaps wherever it likes: the lowest are forgotten.
void LaunchOutcomes::add_unused(std::uint64_t first, std::uint64_t last) {
  auto next = unused_.upper_bound(first);
  if (next != unused_.end() && next->first == last + 1) {
    last = next->second;
    next = unused_.erase(next);
  }
  if (next != unused_.begin() && std::prev(next)->second + 1 == first) {
    std::prev(next)->second = last;
  } else {
    unused_.emplace_hint(next, first, last);
  }
  if (unused_.size() > limits_.outcomes) unused_.erase(unused_.begin());
}

}  // namespace eagle::server

#include "server/launch_outcomes.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "eagle/v1/state.pb.h"
#include "engine/run/report_message.h"

namespace eagle::server {
namespace {

std::size_t size_of(const LaunchOutcome& outcome) {
  return outcome.ok() ? outcome->iterations.size() * sizeof(std::int64_t) : outcome.status().message().size();
}

LaunchReport report_of(const v1::OutcomesRecord::Outcome& message) {
  return {run::host_of(message.host()),
          message.launches(),
          message.threads(),
          message.wall_s(),
          {message.iterations().begin(), message.iterations().end()},
          run::counts_of(message.counts())};
}

void describe(const LaunchReport& report, v1::OutcomesRecord::Outcome& message) {
  run::describe(report.host(), *message.mutable_host());
  message.set_launches(report.launches);
  message.set_threads(report.threads);
  message.set_wall_s(report.wall_s);
  message.mutable_iterations()->Add(report.iterations.begin(), report.iterations.end());
  run::describe(report.counts, *message.mutable_counts());
}

Status lost_with_its_worker(std::uint64_t launch_id) {
  return {Reason::worker_restarted, "launch " + std::to_string(launch_id) +
                                        " was given to a worker that has died since: it may have run in "
                                        "part, and is not run again; look at the arrays, and launch anew"};
}

}  // namespace

StatusOr<LaunchOutcomes::Admission> LaunchOutcomes::admit(const LaunchRequest& request, Receiver receiver,
                                                          Manner manner) {
  std::optional<LaunchOutcome> known;
  {
    const std::lock_guard lock(mutex_);
    Known* const found = find(request.launch_id);
    if (found == nullptr) {
      if (lost(request.launch_id) || (manner.in_order && request.launch_id <= lost_through_))
        return lost_with_its_worker(request.launch_id);
      if (!take_unused(request.launch_id)) {
        return Status(Reason::outcome_forgotten,
                      "launch " + std::to_string(request.launch_id) +
                          " is older than the outcomes that the daemon keeps, the last " +
                          std::to_string(limits_.outcomes) +
                          " of a session (outcomes): it may have run; use a new, larger id to run it");
      }
      last_added_ = &add(request);
      last_added_->second.receiver = std::move(receiver);
      last_added_->second.awaited = manner.asked_for_later;
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
      entry.awaited |= manner.asked_for_later;
      if (manner.asked_for_later) return Admission::again;
      if (entry.others.size() + 1 >= limits_.launch_waiters) {
        return Status(Reason::quota, "launch " + std::to_string(request.launch_id) + " is waited for by " +
                                         std::to_string(limits_.launch_waiters) +
                                         " calls already, which is the limit (launch_waiters)");
      }
      entry.others.push_back(std::move(receiver));
      return Admission::again;
    }
    known = entry.outcome;
    if (!manner.asked_for_later && std::exchange(entry.awaited, false)) {
      awaited_.erase(request.launch_id);
      keep(*found);
    }
  }
  receiver(*known);
  return Admission::again;
}

void LaunchOutcomes::lost_through(std::uint64_t launch_id) {
  const std::lock_guard lock(mutex_);
  lost_through_ = std::max(lost_through_, launch_id);
}

Status LaunchOutcomes::check_lost(std::uint64_t launch_id) {
  const std::lock_guard lock(mutex_);
  return launch_id != 0 && lost(launch_id) ? lost_with_its_worker(launch_id) : Status();
}

void LaunchOutcomes::settle(std::uint64_t launch_id, const LaunchOutcome& outcome, bool ran) {
  Receiver receiver;
  std::vector<Receiver> others;
  {
    const std::lock_guard lock(mutex_);
    Known* const found = find(launch_id);
    if (found == nullptr) return;
    std::swap(receiver, found->second.receiver);
    others.swap(found->second.others);
    if (ran) {
      found->second.outcome = outcome;
      bytes_ += size_of(outcome);
      keep(*found);
    } else {
      if (found == last_added_) last_added_ = nullptr;
      entries_.erase(launch_id);
      add_unused(launch_id, launch_id);
    }
  }
  if (receiver) receiver(outcome);
  for (const Receiver& other : others) other(outcome);
}

std::string LaunchOutcomes::left_over() {
  v1::OutcomesRecord record;
  const std::lock_guard lock(mutex_);
  for (const std::uint64_t id : awaited_) {
    const Entry& entry = entries_.at(id);
    v1::OutcomesRecord::Outcome& outcome = *record.add_outcomes();
    outcome.set_graph(entry.request.graph);
    outcome.set_count(entry.request.count);
    outcome.set_launch_id(id);
    if (entry.outcome->ok()) {
      describe(**entry.outcome, outcome);
    } else {
      outcome.set_reason(std::string(info(entry.outcome->status().reason()).wire_name));
      outcome.set_error(entry.outcome->status().message());
    }
  }
  return record.SerializeAsString();
}

Status LaunchOutcomes::restore(const std::string& text) {
  v1::OutcomesRecord record;
  if (!record.ParseFromString(text)) return {Reason::bad_message, "a record of launches' outcomes is none"};
  const std::lock_guard lock(mutex_);
  for (const auto& known : record.outcomes()) {
    if (!take_unused(known.launch_id())) return {Reason::bad_message, "an outcome comes twice"};
    Entry entry;
    entry.request = {known.graph(), known.count(), known.launch_id()};
    entry.awaited = true;
    if (known.reason().empty()) {
      entry.outcome = report_of(known);
    } else {
      entry.outcome = Status(reason_named(known.reason()), known.error());
    }
    bytes_ += size_of(*entry.outcome);
    keep(*entries_.emplace(known.launch_id(), std::move(entry)).first);
  }
  return {};
}

// Those that somebody is to ask for last longest.
void LaunchOutcomes::keep(Known& settled) {
  if (settled.second.awaited) {
    awaited_.insert(settled.first);
  } else {
    settled_.push_back(&settled);
  }
  while (!settled_.empty() && (settled_.size() > limits_.outcomes || bytes_ > limits_.outcome_bytes)) {
    forget(*settled_.front());
    settled_.pop_front();
  }
  while (!awaited_.empty() && (awaited_.size() > limits_.outcomes || bytes_ > limits_.outcome_bytes)) {
    forget(*entries_.find(*awaited_.begin()));
    awaited_.erase(awaited_.begin());
  }
}

void LaunchOutcomes::forget(const Known& settled) {
  bytes_ -= size_of(*settled.second.outcome);
  if (&settled == last_added_) last_added_ = nullptr;
  spare_ = entries_.extract(settled.first);
  spare_.mapped().outcome.reset();
}

// No id above the highest is known.
LaunchOutcomes::Known* LaunchOutcomes::find(std::uint64_t launch_id) {
  if (launch_id > highest_) return nullptr;
  if (last_added_ != nullptr && last_added_->first == launch_id) return last_added_;
  const auto found = entries_.find(launch_id);
  return found == entries_.end() ? nullptr : &*found;
}

// Most launches come when as many are known as may be.
LaunchOutcomes::Known& LaunchOutcomes::add(const LaunchRequest& request) {
  if (spare_.empty()) return *entries_.emplace(request.launch_id, Entry{.request = request}).first;
  spare_.key() = request.launch_id;
  spare_.mapped().request = request;
  return *entries_.insert(std::move(spare_)).position;
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

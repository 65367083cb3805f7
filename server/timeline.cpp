#include "server/timeline.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>
#include <string_view>

#include "server/json_text.h"
#include "server/log_context.h"
#include "server/meters.h"

namespace eagle::server {
namespace {

constexpr int team_thread = 1;  // in the trace; the team's turns follow each other
constexpr int work_thread = 2;  // launches, runs and builds, which overlap
constexpr int gpu_thread = 3;   // that of cuda:0; the others follow

std::string microseconds(std::int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return text;
}

// The objects of "traceEvents".
class EventWriter {
public:
  explicit EventWriter(const std::function<std::string(std::uint64_t, std::uint64_t)>& name_of)
      : name_of_(name_of) {
    name("process_name", 0, "eagled");
    name("thread_name", team_thread, "team");
    name("thread_name", work_thread, "launches");
  }

  void add(const TimelineEvent& event) {
    switch (event.kind) {
      case TimelineEvent::Kind::job:
        return add_job(event);
      case TimelineEvent::Kind::turn:
        return complete(event);
      case TimelineEvent::Kind::host_call:
        return span("job", event.job, "host call", event.begin, event.end, "{}");
      case TimelineEvent::Kind::build:
        return span("build", event.job, "build " + label(event.ids), event.begin, event.end,
                    args(event.ids, ""));
    }
  }
  [[nodiscard]] std::string text() const {
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + events_ + "\n]}\n";
  }

private:
  void add_job(const TimelineEvent& event) {
    const std::string more = ",\"status\":" + json_string(eagle::name_of(event.code)) +
                             ",\"turns\":" + std::to_string(event.turns);
    const std::int64_t begin = event.begin == 0 ? event.end : event.begin;
    begin_span("job", event.job, label(event.ids), event.submitted, args(event.ids, more));
    span("job", event.job, "queued", event.submitted, begin, "{}");
    if (event.begin != 0) span("job", event.job, "running", begin, event.end, "{}");
    end_span("job", event.job, label(event.ids), event.end);
    // A job of one turn has no event for it.
    if (event.turns == 1) complete(event);
  }

  [[nodiscard]] std::string label(const WorkIds& ids) const {
    return ids.graph == 0 ? "run" : name_of_(ids.session, ids.graph);
  }
  static std::string args(const WorkIds& ids, const std::string& more) {
    std::string text = "{\"session\":\"" + id_text(ids.session) + "\"";
    if (ids.graph != 0) text += ",\"graph\":" + std::to_string(ids.graph);
    if (ids.launch != 0) text += ",\"launch\":\"" + std::to_string(ids.launch) + "\"";
    if (ids.trace.given())
      text +=
          ",\"trace_id\":\"" + ids.trace.trace_text() + "\",\"span_id\":\"" + ids.trace.span_text() + "\"";
    return text + more + "}";
  }
  void event(std::string_view phase, std::string_view category, const std::string& name, int thread,
             const std::string& rest) {
    if (!events_.empty()) events_ += ",\n";
    events_ += "{\"ph\":\"" + std::string(phase) + "\",\"cat\":\"" + std::string(category) +
               "\",\"name\":" + json_string(name) + ",\"pid\":" + std::to_string(::getpid()) +
               ",\"tid\":" + std::to_string(thread) + rest + "}";
  }
  void name(const std::string& what, int thread, const std::string& value) {
    event("M", "__metadata", what, thread, ",\"ts\":0,\"args\":{\"name\":" + json_string(value) + "}");
  }
  void complete(const TimelineEvent& turn) {
    const int thread = turn.gpu < 0 ? team_thread : gpu_thread + turn.gpu;
    if (turn.gpu >= 0 && named_.insert(turn.gpu).second)
      name("thread_name", thread, "cuda:" + std::to_string(turn.gpu));
    event("X", "turn", label(turn.ids), thread,
          ",\"ts\":" + microseconds(turn.begin) + ",\"dur\":" + microseconds(turn.end - turn.begin) +
              ",\"args\":" + args(turn.ids, ""));
  }
  // Of one category and id: they lie within each other.
  void begin_span(std::string_view category, std::uint64_t id, const std::string& name, std::int64_t at,
                  const std::string& arguments) {
    event("b", category, name, work_thread,
          ",\"id\":\"0x" + id_text(id) + "\",\"ts\":" + microseconds(at) + ",\"args\":" + arguments);
  }
  void end_span(std::string_view category, std::uint64_t id, const std::string& name, std::int64_t at) {
    event("e", category, name, work_thread,
          ",\"id\":\"0x" + id_text(id) + "\",\"ts\":" + microseconds(at) + ",\"args\":{}");
  }
  void span(std::string_view category, std::uint64_t id, const std::string& name, std::int64_t begin,
            std::int64_t end, const std::string& arguments) {
    begin_span(category, id, name, begin, arguments);
    end_span(category, id, name, end);
  }

  const std::function<std::string(std::uint64_t, std::uint64_t)>& name_of_;
  std::string events_;
  std::set<int> named_;  // GPUs
};

}  // namespace

void Timeline::add(const TimelineEvent& event) {
  const std::lock_guard lock(mutex_);
  if (events_.size() < capacity) {
    events_.push_back(event);
  } else {
    events_[added_ % capacity] = event;
  }
  ++added_;
}

Timeline::Snapshot Timeline::snapshot(std::uint64_t session, std::uint64_t graph) const {
  constexpr std::size_t slice_events = 256;
  std::vector<TimelineEvent> slice(slice_events);
  Snapshot now;
  std::uint64_t at = 0;
  std::uint64_t end = UINT64_MAX;  // what there is at the first look
  do {
    std::size_t count = 0;
    {
      const std::lock_guard lock(mutex_);
      const std::uint64_t oldest = added_ - events_.size();
      if (end == UINT64_MAX) end = added_;
      at = std::max(at, oldest);
      now.forgotten = oldest;
      while (count < slice_events && at < end) slice[count++] = events_[at++ % capacity];
    }
    std::copy_if(slice.begin(), slice.begin() + static_cast<std::ptrdiff_t>(count),
                 std::back_inserter(now.events), [&](const TimelineEvent& event) {
                   return graph == 0 || (event.ids.session == session && event.ids.graph == graph);
                 });
  } while (at < end);
  return now;
}

std::string to_trace_json(const std::vector<TimelineEvent>& events,
                          const std::function<std::string(std::uint64_t, std::uint64_t)>& name_of) {
  EventWriter writer(name_of);
  for (const TimelineEvent& event : events) writer.add(event);
  return writer.text();
}

}  // namespace eagle::server

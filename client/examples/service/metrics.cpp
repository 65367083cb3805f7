#include "client/examples/service/metrics.h"

#include <charconv>
#include <cmath>

namespace example {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

// A label's value, between its quotes.
std::string quoted(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

class Text {
public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = "eagle_service_" + std::string(name);
    out_ +=
        "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " " + std::string(type) + "\n";
  }
  void sample(const std::string& value, std::string_view suffix = {}, const std::string& labels = {}) {
    out_ += name_ + std::string(suffix) + (labels.empty() ? "" : "{" + labels + "}") + " " + value + "\n";
  }
  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    family(name, "counter", help);
    sample(std::to_string(value));
  }
  std::string take() { return std::move(out_); }

private:
  std::string name_;
  std::string out_;
};

}  // namespace

void Metrics::launched(double seconds) {
  ++launches_;
  seconds_ += seconds;
  for (std::size_t i = 0; i < bounds.size(); ++i) at_most_[i] += seconds <= bounds[i] ? 1 : 0;
}

std::string Metrics::text() const {
  Text text;
  text.family("up", "gauge", "Whether the graph is loaded and its daemon answers.");
  text.sample(serving_ ? "1" : "0");
  text.family("launch_seconds", "histogram", "Launches that were whole, from the tick to the outcome.");
  for (std::size_t i = 0; i < bounds.size(); ++i)
    text.sample(std::to_string(at_most_[i]), "_bucket", "le=\"" + number(bounds[i]) + "\"");
  text.sample(std::to_string(launches_), "_bucket", "le=\"+Inf\"");
  text.sample(number(seconds_), "_sum");
  text.sample(std::to_string(launches_), "_count");
  text.counter("deadline_missed_total", "Launches that were stopped at their deadline.", deadline_missed_);
  text.counter("ticks_skipped_total", "Ticks at which the launch before was still running.", ticks_skipped_);
  text.counter("worker_restarts_total", "Launches that ended with the daemon's worker.", worker_restarts_);
  text.counter("reconnects_total", "Sessions that took the place of one that was lost.", reconnects_);
  text.family("failures_total", "counter", "Launches that failed for other reasons.");
  for (const auto& [reason, count] : failures_)
    text.sample(std::to_string(count), {}, "reason=\"" + quoted(reason) + "\"");
  text.family("value", "gauge", "Planes of one number, after the last launch.");
  for (const auto& [plane, value] : values_)
    text.sample(number(value), {}, "plane=\"" + quoted(plane) + "\"");
  return text.take();
}

}  // namespace example

#include "client/examples/service/service.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <cstdio>

namespace example {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using eagle::Reason;
using eagle::Status;
using eagle::StatusOr;

void say(const std::string& what) { std::fprintf(stderr, "%s\n", what.c_str()); }

// After which the session is no more, and its planes with it.
bool is_lost(Reason reason) {
  return reason == Reason::connection_lost || reason == Reason::no_daemon ||
         reason == Reason::session_closed || reason == Reason::unauthenticated ||
         reason == Reason::shutting_down;
}

std::optional<double> number_of(const eagle::ArrayView& array) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : array.shape) elements *= extent;
  if (elements != 1) return {};
  if (array.dtype == eagle::DType::f64) return *static_cast<const double*>(array.data);
  if (array.dtype == eagle::DType::f32) return *static_cast<const float*>(array.data);
  if (array.dtype == eagle::DType::i64)
    return static_cast<double>(*static_cast<const std::int64_t*>(array.data));
  return {};
}

}  // namespace

class Service::State {
public:
  State(asio::io_context& io, ServiceOptions options, eagle::GraphFile file, Metrics& metrics)
      : io_(io), timer_(io), options_(std::move(options)), file_(std::move(file)), metrics_(metrics) {}

  void start() {
    next_ = Clock::now();
    tick();
  }

  void stop() {
    stopped_ = true;
    timer_.cancel();
    running_.reset();  // cancels, and waits for the end
    metrics_.serving(false);
  }

private:
  struct Loaded {
    eagle::Session session;
    eagle::Graph graph;
    eagle::NamedArrays planes;
  };

  // Ticks keep their places in time: one that is late does not move the next.
  void tick() {
    if (stopped_) return;
    next_ += options_.period;
    if (const auto now = Clock::now(); next_ < now) next_ = now;
    timer_.expires_at(next_);
    timer_.async_wait([this](boost::system::error_code error) {
      if (!error) tick();
    });
    if (running_) return metrics_.skipped_tick();
    if (!loaded_) {
      if (const Status ready = load(); !ready.ok()) return failed(ready);
    }
    launch();
  }

  Status load() {
    eagle::ConnectOptions connecting;
    connecting.client_name = "example-service";
    EAGLE_ASSIGN_OR_RETURN(eagle::Session session, eagle::connect(options_.endpoint, connecting));
    eagle::NamedArrays planes;
    for (const auto& [plane, name] : options_.open) {
      EAGLE_ASSIGN_OR_RETURN(const eagle::PublishedArray opened, session.open(name));
      planes.emplace_back(plane, opened.view);
    }
    if (!options_.publish.empty()) EAGLE_RETURN_IF_ERROR(publish(session, planes));
    EAGLE_ASSIGN_OR_RETURN(eagle::Graph graph, session.load(file_, {.planes = planes}));
    EAGLE_RETURN_IF_ERROR(graph.build());
    eagle::NamedArrays all = graph.planes();
    loaded_.emplace(Loaded{std::move(session), std::move(graph), std::move(all)});
    if (std::exchange(was_loaded_, true)) metrics_.reconnected();
    metrics_.serving(true);
    say("serving graph " + file_.hash());
    return {};
  }

  // Arrays of their own for the planes that nobody else has, each under a name.
  Status publish(const eagle::Session& session, eagle::NamedArrays& planes) const {
    for (const eagle::SavedPlane& plane : file_.planes()) {
      bool opened = false;
      for (const auto& [name, published] : options_.open) {
        for (const std::string& known : plane.names) opened |= known == name;
      }
      if (opened) continue;
      EAGLE_ASSIGN_OR_RETURN(auto buffer, session.allocate(plane.bytes, plane.name));
      eagle::ArrayView view{buffer->data(),
                            plane.dtype,
                            plane.item_bytes,
                            plane.shape,
                            eagle::row_major_strides(plane.shape, plane.item_bytes),
                            false,
                            buffer};
      EAGLE_ASSIGN_OR_RETURN(
          const eagle::PublishedArray published,
          session.publish(view, options_.publish + "." + plane.name, {.writable = true, .to = {}}));
      if (published.moved) view = published.view;
      planes.emplace_back(plane.name, std::move(view));
    }
    return {};
  }

  void launch() {
    const auto begun = Clock::now();
    running_.emplace(loaded_->graph.launch_async(1, {.timeout = options_.deadline, .cancel = {}}));
    running_->then([this](std::function<void()> function) { asio::post(io_, std::move(function)); },
                   [this, begun](const StatusOr<eagle::LaunchReport>& report) {
                     if (!running_) return;  // stopped meanwhile
                     running_.reset();
                     ended(report, std::chrono::duration<double>(Clock::now() - begun).count());
                   });
  }

  void ended(const StatusOr<eagle::LaunchReport>& report, double seconds) {
    if (stopped_) return;
    if (!report.ok()) return failed(report.status());
    metrics_.serving(true);
    metrics_.launched(seconds);
    for (const auto& [name, array] : loaded_->planes) {
      if (const auto value = number_of(array)) metrics_.value(name, *value);
    }
  }

  void failed(const Status& status) {
    if (status.reason() == Reason::deadline) {
      metrics_.missed_deadline();
      return accept();
    }
    say(status.to_string());
    if (status.reason() == Reason::worker_restarted) {
      // The keeper has started another worker, which has this session, its planes and its graph.
      metrics_.worker_restarted();
      return accept();
    }
    metrics_.failed(eagle::info(status.reason()).wire_name);
    if (status.reason() == Reason::plane_torn) return accept();
    metrics_.serving(false);
    if (is_lost(status.reason())) loaded_.reset();
  }

  // What was stopped part way is written anew by the next launch.
  void accept() {
    if (!loaded_) return;
    for (const auto& [name, array] : loaded_->planes) {
      if (const Status status = loaded_->session.accept(array); !status.ok()) return failed_to_accept(status);
    }
  }
  void failed_to_accept(const Status& status) {
    say(status.to_string());
    metrics_.failed(eagle::info(status.reason()).wire_name);
    if (is_lost(status.reason())) loaded_.reset();
  }

  asio::io_context& io_;
  asio::steady_timer timer_;
  const ServiceOptions options_;
  const eagle::GraphFile file_;
  Metrics& metrics_;
  Clock::time_point next_;
  std::optional<Loaded> loaded_;
  std::optional<eagle::Future<eagle::LaunchReport>> running_;  // before the graph goes
  bool was_loaded_ = false;
  bool stopped_ = false;
};

Service::Service(std::unique_ptr<State> state) : state_(std::move(state)) {}
Service::~Service() = default;
void Service::start() { state_->start(); }
void Service::stop() { state_->stop(); }

StatusOr<std::unique_ptr<Service>> Service::create(asio::io_context& io, ServiceOptions options,
                                                   Metrics& metrics) {
  EAGLE_ASSIGN_OR_RETURN(eagle::GraphFile file, eagle::GraphFile::read(options.graph));
  if (!file.calls().empty()) {
    return Status(Reason::bad_binding, "the graph calls back into the program that made it ('" +
                                           file.calls().front() + "'); expected kernels alone");
  }
  return std::unique_ptr<Service>(
      new Service(std::make_unique<State>(io, std::move(options), std::move(file), metrics)));
}

}  // namespace example

#include "tools/load/load_runner.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

namespace hippodrome {
namespace {

using Time = LoadClock::time_point;

constexpr std::chrono::milliseconds kProgressInterval{500};

// Of all threads of this process.
double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class LoadRunner {
 public:
  LoadRunner(boost::asio::io_context& context, LoadClient& client, const Prompts& prompts,
             const LoadPlan& plan, const std::function<void(double)>& progress)
      : context_(context),
        client_(client),
        prompts_(prompts),
        progress_(progress),
        run_{.plan = plan, .begin = LoadClock::now()},
        schedule_(plan, run_.begin),
        timer_(context),
        progress_timer_(context),
        guard_(context.get_executor()) {}

  LoadRun Run() {
    const double processor_seconds = ProcessorSeconds();
    context_.restart();
    Pump();
    ShowProgress();
    context_.run();
    const std::chrono::duration<double> wall = LoadClock::now() - run_.begin;
    run_.client_processors = (ProcessorSeconds() - processor_seconds) / wall.count();
    run_.retried = schedule_.retried();
    return std::move(run_);
  }

 private:
  // Sends all that is due, and waits for what comes next.
  void Pump() {
    for (;;) {
      const Time now = LoadClock::now();
      const std::optional<Time> due = schedule_.Due(now);
      if (!due || *due > now) {
        Wait(due, now);
        return;
      }
      Launch(schedule_.Take(now), now);
    }
  }

  void Wait(std::optional<Time> due, Time now) {
    if (schedule_.Over(now)) {
      timer_.cancel();
      progress_timer_.cancel();
      guard_.reset();
    } else if (due) {
      timer_.expires_at(*due);
      timer_.async_wait([this](const boost::system::error_code& error) {
        if (!error) Pump();
      });
    }
  }

  void Launch(const LoadSchedule::Launch& launch, Time now) {
    if (!launch.again) run_.records.emplace_back();
    LoadRecord& record = run_.records[launch.index];
    record.intended = launch.intended;
    record.counted = launch.counted;
    if (!launch.sent) {
      record.sent = record.end = now;
      record.outcome = LoadOutcome::kNotSent;
      record.code = "not_sent";
      return;
    }
    if (!launch.again) record.sent = now;
    client_.Send(prompts_.Make(launch.index), record,
                 [this, index = launch.index] { Ended(index); });
  }

  void Ended(int64_t index) {
    LoadRecord& record = run_.records[index];
    const Time now = LoadClock::now();
    if (schedule_.Ended(index, now, record.outcome, record.retry_after)) record.arrivals.clear();
    Pump();
  }

  void ShowProgress() {
    if (!guard_.owns_work()) return;
    const std::chrono::duration<double> wall = LoadClock::now() - run_.begin;
    const std::chrono::duration<double> all = run_.plan.warm_up + run_.plan.duration;
    const double by_time = all.count() > 0 && run_.plan.duration.count() > 0 ? wall / all : 0;
    const double by_number = run_.plan.requests > 0 ? static_cast<double>(run_.records.size()) /
                                                          static_cast<double>(run_.plan.requests)
                                                    : 0;
    progress_(std::min(1.0, std::max(by_time, by_number)));
    progress_timer_.expires_after(kProgressInterval);
    progress_timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) ShowProgress();
    });
  }

  boost::asio::io_context& context_;
  LoadClient& client_;
  const Prompts& prompts_;
  const std::function<void(double)>& progress_;
  LoadRun run_;
  LoadSchedule schedule_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer progress_timer_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
};

}  // namespace

LoadRun RunLoad(boost::asio::io_context& context, LoadClient& client, const Prompts& prompts,
                const LoadPlan& plan, const std::function<void(double done)>& progress) {
  return LoadRunner(context, client, prompts, plan, progress).Run();
}

}  // namespace hippodrome

#include "tools/bench/bench_serve.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "tools/bench/bench_report.h"
#include "tools/client/client_security.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/command_line/text_file.h"
#include "tools/limits/machine.h"
#include "tools/load/load_client.h"
#include "tools/load/load_report.h"
#include "tools/load/load_runner.h"
#include "tools/load/prompts.h"
#include "tools/plots/svg.h"

namespace hippodrome {
namespace {

constexpr int64_t kMostTokens = 1 << 20;
constexpr int64_t kMostClients = 16384;
constexpr double kMostRate = 100000;

CommandSpec ServeBenchSpec() {
  CommandSpec spec{
      .name = "bench serve",
      .summary = "Measures a running server under load.",
      .usage = {"(--http HOST:PORT | --grpc HOST:PORT) --rate R[,R]... [OPTION]...",
                "(--http HOST:PORT | --grpc HOST:PORT) [--concurrency N[,N]...] [OPTION]..."},
      .description =
          "With --rate, requests arrive as a Poisson process, whatever becomes of those before, "
          "and "
          "latencies count from when a request was due, so that waiting is not left out. With "
          "--concurrency, so many clients each ask anew once they have their answer. Several "
          "numbers are measured one after the other.\n"
          "Answers are greedy, and go on over the end of the text.",
      .options = {
          {"http", "HOST:PORT", "call the server's HTTP there"},
          {"grpc", "HOST:PORT", "call its gRPC there"},
          {"rate", "R[,R]...", "requests per second that arrive"},
          {"concurrency", "N[,N]...", "clients that ask (default without --rate: 32)"},
          {"duration", "S", "seconds that are measured (default without --requests: 10)"},
          {"requests", "N", "requests that are measured, in place of --duration"},
          {"warm-up", "S", "seconds before, which are not", "0"},
          {"task", "generate|predict", "streams of tokens, or labels of an encoder", "generate"},
          {"model", "NAME", "the server's model (default: its first)"},
          {"prompt", "N|N-N", "tokens of each random prompt, or words with predict", "512"},
          {"tokens", "N|N-N", "new tokens of each stream", "256"},
          {"prompts", "FILE",
           "prompts in place of random ones: .jsonl with {\"prompt\": TEXT or [ID, ...], "
           "\"max_tokens\": N} in each line, or lines of text"},
          {"seed", "N", "of arrivals and random prompts", "0"},
          {"max-outstanding", "N", "with --rate: what arrives beyond so many is not sent", "1024"},
          {"retries", "N", "times that a refused request is sent again, after Retry-After", "0"},
          {"timeout", "S", "seconds for each request", "600"},
          {"limit-ttft", "MS", "goodput: time to the first token, at most"},
          {"limit-itl", "MS", "goodput: each time between tokens, at most"},
          {"limit-e2e", "MS", "goodput: time to the whole answer, at most"}}};
  for (Option& option : ClientSecurityOptions()) spec.options.push_back(std::move(option));
  spec.options.push_back({"svg", "FILE", "draw first tokens and goodput there"});
  spec.options.push_back(JsonOption());
  return spec;
}

struct ServeBenchmark {
  bool http = false;
  LoadTarget target;
  PromptOptions prompts;
  std::string prompts_file;
  std::vector<LoadPlan> points;
  LatencyLimits limits;
};

absl::StatusOr<std::vector<double>> ReadNumbers(const CommandLine& line, const std::string& name,
                                                double least, double most) {
  const std::string text = line.Text(name);
  std::vector<double> numbers;
  const char* end = text.data() + text.size();
  for (const char* at = text.data();; ++at) {
    double number = 0;
    const auto [rest, code] = std::from_chars(at, end, number);
    if (code != std::errc() || !(number >= least && number <= most) ||
        (rest != end && *rest != ',')) {
      return Usage("--" + name + " is '" + text + "', expected numbers in [" + Label(least) + ", " +
                   Label(most) + "]");
    }
    numbers.push_back(number);
    if (rest == end) return numbers;
    at = rest;
  }
}

absl::StatusOr<LoadClock::duration> ReadSeconds(const CommandLine& line, const std::string& name) {
  HIPPODROME_ASSIGN_OR_RETURN(const double seconds, line.Number(name, 0, 86400));
  return std::chrono::duration_cast<LoadClock::duration>(std::chrono::duration<double>(seconds));
}

absl::StatusOr<LoadPlan> ReadPlan(const CommandLine& line) {
  LoadPlan plan;
  if (line.Has("requests") && line.Has("duration")) {
    return Usage("give either --requests or --duration");
  }
  if (line.Has("requests")) {
    HIPPODROME_ASSIGN_OR_RETURN(plan.requests, line.Integer("requests", 1, 10000000));
  } else if (line.Has("duration")) {
    HIPPODROME_ASSIGN_OR_RETURN(plan.duration, ReadSeconds(line, "duration"));
    if (plan.duration == plan.duration.zero()) return Usage("--duration must be more than 0");
  } else {
    plan.duration = std::chrono::seconds(10);
  }
  HIPPODROME_ASSIGN_OR_RETURN(plan.warm_up, ReadSeconds(line, "warm-up"));
  HIPPODROME_ASSIGN_OR_RETURN(plan.max_outstanding,
                              line.Integer("max-outstanding", 1, kMostClients));
  HIPPODROME_ASSIGN_OR_RETURN(plan.retries, line.Integer("retries", 0, 1000));
  return plan;
}

absl::StatusOr<std::vector<LoadPlan>> ReadPoints(const CommandLine& line, LoadPlan plan) {
  std::vector<LoadPlan> points;
  if (line.Has("rate") && line.Has("concurrency")) {
    return Usage("give either --rate or --concurrency");
  }
  if (line.Has("rate")) {
    HIPPODROME_ASSIGN_OR_RETURN(const auto rates, ReadNumbers(line, "rate", 0.001, kMostRate));
    for (const double rate : rates) {
      plan.rate = rate;
      points.push_back(plan);
    }
    return points;
  }
  if (!line.Has("concurrency")) return std::vector<LoadPlan>{plan};
  HIPPODROME_ASSIGN_OR_RETURN(const auto clients,
                              ReadNumbers(line, "concurrency", 1, double{kMostClients}));
  for (const double number : clients) {
    if (number != std::floor(number)) return Usage("--concurrency takes whole numbers");
    plan.concurrency = static_cast<int64_t>(number);
    points.push_back(plan);
  }
  return points;
}

absl::Status ReadPrompts(const CommandLine& line, uint64_t seed, ServeBenchmark& benchmark) {
  PromptOptions& prompts = benchmark.prompts;
  prompts.seed = seed;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string task, line.Choice("task"));
  prompts.task = task == "predict" ? LoadTask::kPredict : LoadTask::kGenerate;
  for (const auto& [name, range] :
       {std::pair("prompt", &prompts.prompt), {"tokens", &prompts.max_tokens}}) {
    auto read = ParseLengthRange(line.Text(name), kMostTokens);
    if (!read.ok()) return Usage("--" + std::string(name) + " is " + Message(read.status()));
    *range = *read;
  }
  benchmark.prompts_file = line.Text("prompts");
  if (line.Has("prompts") && line.Has("prompt")) return Usage("give either --prompts or --prompt");
  return absl::OkStatus();
}

absl::StatusOr<LatencyLimits> ReadLimits(const CommandLine& line) {
  LatencyLimits limits;
  for (const auto& [name, limit] : {std::pair("limit-ttft", &limits.first_token),
                                    {"limit-itl", &limits.between_tokens},
                                    {"limit-e2e", &limits.end_to_end}}) {
    if (!line.Has(name)) continue;
    HIPPODROME_ASSIGN_OR_RETURN(*limit, line.Number(name, 0, 1e9));
  }
  return limits;
}

absl::StatusOr<ServeBenchmark> ReadBenchmark(const CommandLine& line) {
  ServeBenchmark benchmark;
  if (line.Has("http") == line.Has("grpc")) return Usage("give either --http or --grpc");
  benchmark.http = line.Has("http");
  benchmark.target.address = line.Text(benchmark.http ? "http" : "grpc");
  benchmark.target.model = line.Text("model");
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.target.security, ReadClientSecurity(line));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t timeout, line.Integer("timeout", 1, 86400));
  benchmark.target.timeout = std::chrono::seconds(timeout);
  HIPPODROME_ASSIGN_OR_RETURN(LoadPlan plan, ReadPlan(line));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t seed, line.Integer("seed", 0, int64_t{1} << 53));
  plan.seed = static_cast<uint64_t>(seed);
  HIPPODROME_RETURN_IF_ERROR(ReadPrompts(line, plan.seed, benchmark));
  benchmark.target.task = benchmark.prompts.task;
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.points, ReadPoints(line, plan));
  benchmark.target.most_outstanding = 1;
  for (const LoadPlan& point : benchmark.points) {
    benchmark.target.most_outstanding =
        std::max(benchmark.target.most_outstanding,
                 point.rate > 0 ? point.max_outstanding : point.concurrency);
  }
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.limits, ReadLimits(line));
  return benchmark;
}

// Raises the limit of descriptors as far as may be: over HTTP each request that is outstanding has
// a connection.
absl::Status RaiseFileLimit(const ServeBenchmark& benchmark) {
  constexpr int64_t kOthers = 64;  // files, the libraries' own
  const int64_t needed = (benchmark.http ? benchmark.target.most_outstanding : 64) + kOthers;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::OkStatus();
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max == RLIM_INFINITY || static_cast<int64_t>(limit.rlim_max) >= needed) {
    return absl::OkStatus();
  }
  return FailedPrecondition("so many requests at once need " + std::to_string(needed) +
                            " file descriptors, and this process may have " +
                            std::to_string(limit.rlim_max) +
                            ": raise the limit (ulimit -Hn), or lower --concurrency or "
                            "--max-outstanding");
}

absl::StatusOr<std::vector<LoadPoint>> Measure(const ServeBenchmark& benchmark) {
  HIPPODROME_RETURN_IF_ERROR(RaiseFileLimit(benchmark));
  Prompts prompts(benchmark.prompts);
  if (!benchmark.prompts_file.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(prompts, Prompts::Read(benchmark.prompts_file, benchmark.prompts));
  }
  boost::asio::io_context context(1);
  HIPPODROME_ASSIGN_OR_RETURN(const std::unique_ptr<LoadClient> client,
                              benchmark.http ? MakeHttpLoadClient(context, benchmark.target)
                                             : MakeGrpcLoadClient(context, benchmark.target));
  std::vector<LoadPoint> points;
  for (const LoadPlan& plan : benchmark.points) {
    Progress progress(PointName(plan));
    const LoadRun run = RunLoad(context, *client, prompts, plan, [&](double done) {
      progress.Update(static_cast<int64_t>(1000 * done), 1000);
    });
    points.push_back({.plan = plan,
                      .figures = FiguresOf(run, benchmark.limits),
                      .retried = run.retried,
                      .client_processors = run.client_processors});
    std::printf("%s", PointTable(points.back(), benchmark.limits).c_str());
    std::fflush(stdout);
    const LoadFigures& figures = points.back().figures;
    if (figures.failed > 0 && figures.answered == 0) return Unavailable(figures.failure);
  }
  return points;
}

std::vector<BenchResult> ResultsOf(const ServeBenchmark& benchmark,
                                   const std::vector<LoadPoint>& points) {
  const LengthRange& tokens = benchmark.prompts.max_tokens;
  const bool same_length = benchmark.prompts_file.empty() && tokens.least == tokens.most &&
                           benchmark.prompts.task == LoadTask::kGenerate;
  std::vector<BenchResult> results;
  for (const LoadPoint& point : points) {
    for (const LoadFigure& figure : FiguresByName(point, same_length ? tokens.most : 0)) {
      results.push_back(
          {.name = figure.name,
           .length = benchmark.prompts_file.empty() ? benchmark.prompts.prompt.most : 0,
           .batch = point.plan.rate > 0 ? 0 : point.plan.concurrency,
           .rate = point.plan.rate,
           .value = figure.value,
           .unit = figure.unit,
           .limit = figure.limit,
           .fraction = figure.limit > 0 ? figure.value / figure.limit : 0});
    }
  }
  return results;
}

std::string TitleOf(const ServeBenchmark& benchmark) {
  const ServeBenchmark& b = benchmark;
  std::string title =
      std::string(b.http ? "HTTP" : "gRPC") + (b.target.security.tls() ? " over TLS" : "");
  if (!b.target.model.empty()) title += ", " + b.target.model;
  const auto length = [](const LengthRange& range) {
    return std::to_string(range.least) +
           (range.most > range.least ? "-" + std::to_string(range.most) : "");
  };
  const bool predict = b.prompts.task == LoadTask::kPredict;
  title += b.prompts_file.empty()
               ? ", " + length(b.prompts.prompt) + (predict ? " words" : " prompt tokens")
               : ", prompts of a file";
  if (!predict) title += ", " + length(b.prompts.max_tokens) + " new ones";
  return title;
}

absl::Status Serve(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const ServeBenchmark benchmark, ReadBenchmark(line));
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<LoadPoint> points, Measure(benchmark));
  if (line.Has("svg")) {
    const Drawing drawing = DrawSweep(points, benchmark.limits, TitleOf(benchmark));
    HIPPODROME_RETURN_IF_ERROR(WriteTextFile(line.Text("svg"), SvgFile(drawing)));
  }
  if (!line.Has("json")) return absl::OkStatus();
  nlohmann::json report =
      ReportJson(line, MachineName(),
                 {.ceilings = MeasureCeilings({}), .results = ResultsOf(benchmark, points)});
  for (const LoadPoint& point : points) report["points"].push_back(PointCounts(point));
  return WriteTextFile(line.Text("json"), ReportText(report));
}

}  // namespace

int BenchServeCommand(int argc, char** argv) {
  return RunCommand(argc, argv, ServeBenchSpec(), Serve);
}

}  // namespace hippodrome

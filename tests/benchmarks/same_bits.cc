// same_bits PROMPTS TOKENS MODEL_DIR: what so many prompts are answered, that many tokens each,
// with the log probabilities of the likeliest ones: alone and cold, in batches of one to twice as
// many, from the tree of prefixes, as forks of one prompt, and from saved states, with one thread
// and two, in f32 and bf16. Counts the bits that differ from what each says alone with one thread.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/generator.h"
#include "engine/model_directory.h"
#include "engine/models/h3/hybrid_h3.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome {
namespace {

using Answer = std::vector<TokenEvent>;

constexpr int64_t kLongestPrompt = 600;
constexpr int64_t kForks = 4;
constexpr int32_t kLikeliest = 5;

// Of lengths from one token to beyond what is transformed; every other one is drawn.
std::vector<GenerationRequest> Requests(int64_t count, int64_t tokens, int64_t vocabulary) {
  std::vector<GenerationRequest> requests;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t length = 1 + i * (kLongestPrompt - 1) / std::max<int64_t>(1, count - 1);
    GenerationRequest request{.prompt = RandomIds(length, vocabulary, static_cast<uint32_t>(i)),
                              .max_tokens = tokens};
    request.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
    request.sampling.seed = static_cast<uint64_t>(i);
    request.ignore_eos = true;
    request.likeliest = kLikeliest;
    requests.push_back(std::move(request));
  }
  return requests;
}

int64_t BitsBetween(float a, float b) {
  return std::popcount(std::bit_cast<uint32_t>(a) ^ std::bit_cast<uint32_t>(b));
}

int64_t BitsBetween(int32_t a, int32_t b) {
  return std::popcount(static_cast<uint32_t>(a) ^ static_cast<uint32_t>(b));
}

int64_t BitsBetween(const TokenEvent& a, const TokenEvent& b) {
  int64_t bits = BitsBetween(a.token, b.token) +
                 BitsBetween(a.scores->log_probability, b.scores->log_probability);
  for (size_t i = 0; i < kLikeliest; ++i) {
    const auto& one = a.scores->likeliest[i];
    const auto& other = b.scores->likeliest[i];
    bits += BitsBetween(one.token, other.token) +
            BitsBetween(one.log_probability, other.log_probability);
  }
  return bits;
}

// Runs all that is admitted to its end; answers by sequence.
std::map<SequenceId, Answer> Finish(Generator& generator) {
  std::map<SequenceId, Answer> answers;
  while (generator.prefilling() || generator.decoding() > 0) {
    std::vector<TokenEvent> events;
    generator.Prefill(Generator::Clock::time_point::max(), events);
    generator.Step(events);
    for (TokenEvent& event : events) answers[event.sequence].push_back(std::move(event));
  }
  return answers;
}

class Comparison {
 public:
  Comparison(const LoadedDecoder& loaded, Backend& backend, int threads,
             const std::vector<GenerationRequest>& requests)
      : model_(*loaded.model),
        backend_(backend),
        name_(fmt::format("{}, {} thread(s)", WeightsName(loaded.weights), threads)),
        requests_(requests) {}

  std::vector<Answer> Alone() {
    const auto generator = New(1);
    std::vector<Answer> answers;
    for (const GenerationRequest& request : requests_) {
      answers.push_back(std::move(Together(*generator, {request})[0]));
    }
    return answers;
  }

  // Bits that differ from `expected`, whatever the way.
  int64_t Run(const std::vector<Answer>& expected) {
    expected_ = &expected;
    Report("alone", Alone());
    for (int64_t size = 1; size <= 2 * std::ssize(requests_); size *= 2) {
      Report(fmt::format("in batches of {}", size), InBatches(size));
    }
    FromTheTree();
    AsForks();
    FromStates();
    return bits_;
  }

 private:
  std::unique_ptr<Generator> New(int64_t sequences, int64_t prefix_slots = 0) {
    GeneratorOptions options{.max_sequences = sequences, .prefix_slots = prefix_slots};
    options.prefix_interval = 64;
    const int64_t rows = kLongestPrompt + 2 * requests_[0].max_tokens + kPageRows;
    options.key_value_bytes = (sequences + prefix_slots) * rows * model_.config().n_layer *
                              model_.config().d_model * static_cast<int64_t>(2 * sizeof(float));
    return Generator::Create(backend_, model_, options).value();
  }

  static std::vector<Answer> Together(Generator& generator,
                                      const std::vector<GenerationRequest>& requests) {
    std::vector<SequenceId> ids;
    for (const GenerationRequest& request : requests) {
      ids.push_back(generator.Admit(request).value());
    }
    std::map<SequenceId, Answer> found = Finish(generator);
    std::vector<Answer> answers;
    for (const SequenceId id : ids) {
      answers.push_back(std::move(found.at(id)));
      generator.Release(id);
    }
    return answers;
  }

  // Where there are too few, some run several times, each under a salt of its own.
  std::vector<Answer> InBatches(int64_t size, Generator* generator = nullptr) {
    const std::unique_ptr<Generator> own = generator == nullptr ? New(size) : nullptr;
    if (generator == nullptr) generator = own.get();
    const auto count = std::max(size, std::ssize(requests_));
    std::vector<Answer> answers;
    for (int64_t begin = 0; begin < count; begin += size) {
      std::vector<GenerationRequest> batch;
      for (int64_t i = begin; i < std::min(begin + size, count); ++i) {
        batch.push_back(requests_[i % requests_.size()]);
        batch.back().cache_salt = std::to_string(i / std::ssize(requests_));
      }
      for (Answer& answer : Together(*generator, batch)) answers.push_back(std::move(answer));
    }
    return answers;
  }

  void FromTheTree() {
    const auto generator = New(8, 4 * std::ssize(requests_));
    InBatches(8, generator.get());
    const int64_t before = generator->prefixes().hits;
    const std::vector<Answer> answers = InBatches(8, generator.get());
    Report(fmt::format("from the tree ({} hits)", generator->prefixes().hits - before), answers);
  }

  // All of one prompt are admitted together: one takes it in.
  void AsForks() {
    const auto generator = New(kForks);
    std::vector<Answer> answers;
    for (const GenerationRequest& request : requests_) {
      for (Answer& answer : Together(*generator, {kForks, request})) {
        answers.push_back(std::move(answer));
      }
    }
    // By prompt, then by fork: as Report() takes them, the other way round.
    std::vector<Answer> sorted;
    for (int64_t fork = 0; fork < kForks; ++fork) {
      for (int64_t i = 0; i < std::ssize(requests_); ++i) {
        sorted.push_back(std::move(answers[i * kForks + fork]));
      }
    }
    Report(fmt::format("as {} forks each", kForks), sorted);
  }

  // Each is saved half-way, and two go on from there.
  void FromStates() {
    const auto generator = New(2);
    std::vector<Answer> one, other;
    for (const GenerationRequest& request : requests_) {
      GenerationRequest first = request;
      first.max_tokens = request.max_tokens / 2;
      const SequenceId id = generator->Admit(first).value();
      const Answer begun = Finish(*generator).at(id);
      const auto state = std::make_shared<const SavedState>(generator->Save(id).value());
      generator->Release(id);
      GenerationRequest rest = request;
      rest.prompt = {};
      rest.max_tokens -= first.max_tokens;
      rest.start = state;
      std::vector<Answer> ends = Together(*generator, {2, rest});
      for (Answer& end : ends) end.insert(end.begin(), begun.begin(), begun.end());
      one.push_back(std::move(ends[0]));
      other.push_back(std::move(ends[1]));
    }
    std::move(other.begin(), other.end(), std::back_inserter(one));
    Report("from states, twice each", one);
  }

  // Answers to all prompts in turn, once or more often.
  void Report(const std::string& way, const std::vector<Answer>& answers) {
    int64_t bits = 0;
    int64_t tokens = 0;
    for (size_t i = 0; i < answers.size(); ++i) {
      const Answer& expected = (*expected_)[i % expected_->size()];
      if (answers[i].size() != expected.size()) std::abort();
      for (size_t j = 0; j < expected.size(); ++j) bits += BitsBetween(answers[i][j], expected[j]);
      tokens += std::ssize(expected);
    }
    fmt::print("{}, {}: {} sequences, {} tokens, {} bits differ\n", name_, way, answers.size(),
               tokens, bits);
    std::fflush(stdout);
    bits_ += bits;
  }

  static constexpr int64_t kPageRows = 64;

  const HybridH3& model_;
  Backend& backend_;
  const std::string name_;
  const std::vector<GenerationRequest>& requests_;
  const std::vector<Answer>* expected_ = nullptr;
  int64_t bits_ = 0;
};

int Main(int64_t prompts, int64_t tokens, const std::string& directory) {
  int64_t bits = 0;
  for (const DType weights : kWeightTypes) {
    std::vector<Answer> expected;
    for (const int threads : {1, 2}) {
      const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = threads});
      const auto loaded = LoadDecoderDirectory(*backend, directory, weights);
      if (!loaded.ok()) {
        fmt::print(stderr, "{}\n", loaded.status().ToString());
        return 1;
      }
      const auto requests = Requests(prompts, tokens, loaded->model->config().vocab_size);
      Comparison comparison(*loaded, *backend, threads, requests);
      if (expected.empty()) expected = comparison.Alone();
      bits += comparison.Run(expected);
    }
  }
  fmt::print("{} bits differ\n", bits);
  return bits == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hippodrome

int main(int argc, char** argv) {
  const int64_t prompts = argc == 4 ? std::atoll(argv[1]) : 0;
  const int64_t tokens = argc == 4 ? std::atoll(argv[2]) : 0;
  if (prompts < 1 || tokens < 2) {
    fmt::print(stderr, "usage: same_bits PROMPTS TOKENS MODEL_DIR\n");
    return 2;
  }
  return hippodrome::Main(prompts, tokens, argv[3]);
}

#include "tools/train/data/masked_lm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "tools/train/data/encoded_examples.h"
#include "tools/train/data/example_random.h"

namespace hippodrome {
namespace {

// Streams of random numbers besides those of epochs.
constexpr uint64_t kDocumentStream = uint64_t{1} << 62;

// Tokens of consecutive sentences: places in the text, [begin, end).
struct Chunk {
  int64_t begin = 0;
  int64_t end = 0;
};

// The token ids that the layout needs.
struct SpecialIds {
  int32_t cls = 0;
  int32_t sep = 0;
  int32_t mask = 0;
  int32_t pad = 0;
  int64_t vocab_size = 0;
};

// Cuts the sentences that end at `ends` and begin at `begin` into chunks of `target` or more.
void CollectChunks(int64_t begin, std::span<const int64_t> ends, int64_t target,
                   std::vector<Chunk>& chunks) {
  for (const int64_t end : ends) {
    if (end - begin < target && end != ends.back()) continue;
    chunks.push_back({begin, end});
    begin = end;
  }
}

std::vector<Chunk> MakeChunks(const TokenizedText& text, const MaskedLmOptions& options,
                              uint64_t seed) {
  const int64_t longest = options.length - 2;
  std::vector<Chunk> chunks;
  int64_t first = 0;  // sentence of the document
  for (size_t i = 0; i < text.document_ends.size(); ++i) {
    ExampleRandom random(seed, kDocumentStream, i);
    const bool is_short = random.Uniform() < options.short_documents && longest > 2;
    const int64_t target = is_short ? 2 + random.Below(longest - 1) : longest;
    const int64_t end = text.document_ends[i];
    const std::span<const int64_t> ends = std::span(text.sentence_ends).subspan(first, end - first);
    CollectChunks(first == 0 ? 0 : text.sentence_ends[first - 1], ends, target, chunks);
    first = end;
  }
  return chunks;
}

// How many of `count` coins show heads.
int64_t Heads(int64_t count, ExampleRandom& random) {
  int64_t heads = 0;
  for (; count >= 64; count -= 64) heads += std::popcount(random.Bits());
  return heads + std::popcount(random.Bits() & ((uint64_t{1} << count) - 1));
}

class MaskedLm final : public TrainingData {
 public:
  MaskedLm(TokenizedText text, std::vector<Chunk> chunks, const SpecialIds& special,
           const MaskedLmOptions& options, const BatchOptions& batches, BatchSampler sampler)
      : tokens_(std::move(text.tokens)),
        chunks_(std::move(chunks)),
        special_(special),
        options_(options),
        seed_(batches.seed),
        evaluation_(batches.evaluation),
        sampler_(sampler) {}

  int64_t batches() const override { return sampler_.batches(); }

  TrainingBatch Batch(int64_t index) const override {
    const uint64_t epoch = evaluation_ ? 0 : static_cast<uint64_t>(sampler_.Epoch(index));
    const std::vector<int64_t> examples = sampler_.Examples(index);
    TrainingBatch batch{.sequences = std::ssize(examples), .length = options_.length};
    for (const int64_t example : examples) {
      ExampleRandom random(seed_, epoch, static_cast<uint64_t>(example));
      std::vector<int32_t> ids = Layout(chunks_[example], random);
      std::vector<int32_t> labels(ids.size(), -1);
      Mask(random, ids, labels);
      AppendPadded(ids, options_.length, special_.pad, batch.ids);
      AppendPadded(labels, options_.length, -1, batch.labels);
      AppendPadded(std::vector<int32_t>(ids.size(), 1), options_.length, 0, batch.mask);
    }
    return batch;
  }

 private:
  // [CLS] tokens [SEP], shortened where they are too many.
  std::vector<int32_t> Layout(Chunk chunk, ExampleRandom& random) const {
    const int64_t excess = chunk.end - chunk.begin - (options_.length - 2);
    if (excess > 0) {
      const int64_t front = Heads(excess, random);
      chunk.begin += front;
      chunk.end -= excess - front;
    }
    std::vector<int32_t> ids = {special_.cls};
    ids.insert(ids.end(), tokens_.begin() + chunk.begin, tokens_.begin() + chunk.end);
    ids.push_back(special_.sep);
    return ids;
  }

  void Mask(ExampleRandom& random, std::vector<int32_t>& ids, std::vector<int32_t>& labels) const {
    std::vector<size_t> places(ids.size() - 2);
    std::iota(places.begin(), places.end(), 1);
    const double part = options_.masked_part * static_cast<double>(ids.size());
    const int64_t wanted = std::max<int64_t>(1, std::lrint(part));  // halves go to even numbers
    const int64_t count = std::min({options_.most_masked, wanted, std::ssize(places)});
    for (int64_t i = 0; i < count; ++i) {
      std::swap(places[i], places[i + random.Below(std::ssize(places) - i)]);
      const size_t place = places[i];
      labels[place] = ids[place];
      ids[place] = Replacement(ids[place], random);
    }
  }

  int32_t Replacement(int32_t token, ExampleRandom& random) const {
    if (random.Uniform() < 0.8) return special_.mask;
    if (random.Uniform() < 0.5) return token;
    return static_cast<int32_t>(random.Below(special_.vocab_size));
  }

  std::vector<int32_t> tokens_;
  std::vector<Chunk> chunks_;
  SpecialIds special_;
  MaskedLmOptions options_;
  uint64_t seed_;
  bool evaluation_;
  BatchSampler sampler_;
};

absl::Status CheckText(const TokenizedText& text, const WordPieceTokenizer& tokenizer) {
  if (text.kind != TokenizerKind::kWordPiece || text.vocab_size != tokenizer.vocab_size()) {
    return InvalidArgument("the text is not encoded by the tokenizer of the model, WordPiece of " +
                           std::to_string(tokenizer.vocab_size()) + " tokens");
  }
  if (!text.document_ends.empty()) return absl::OkStatus();
  return InvalidArgument("the text has no sentences");
}

absl::Status CheckOptions(const MaskedLmOptions& options) {
  const auto is_probability = [](double p) { return p >= 0 && p <= 1; };
  if (options.length < 3) {
    return InvalidArgument("examples have " + std::to_string(options.length) +
                           " tokens, expected at least 3: [CLS], one of the text and [SEP]");
  }
  if (is_probability(options.masked_part) && is_probability(options.short_documents) &&
      options.most_masked >= 1) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "the part of tokens to mask and the probability of short documents must be 0 to 1, and the "
      "most tokens to mask at least 1");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingData>> MakeMaskedLm(TokenizedText text,
                                                           const WordPieceTokenizer& tokenizer,
                                                           const MaskedLmOptions& options,
                                                           const BatchOptions& batches) {
  HIPPODROME_RETURN_IF_ERROR(CheckOptions(options));
  HIPPODROME_RETURN_IF_ERROR(CheckText(text, tokenizer));
  std::vector<Chunk> chunks = MakeChunks(text, options, batches.seed);
  HIPPODROME_ASSIGN_OR_RETURN(BatchSampler sampler,
                              BatchSampler::Create(std::ssize(chunks), batches));
  const SpecialIds special = {.cls = tokenizer.cls(),
                              .sep = tokenizer.sep(),
                              .mask = tokenizer.mask(),
                              .pad = tokenizer.pad(),
                              .vocab_size = tokenizer.vocab_size()};
  return std::make_unique<MaskedLm>(std::move(text), std::move(chunks), special, options, batches,
                                    sampler);
}

}  // namespace hippodrome

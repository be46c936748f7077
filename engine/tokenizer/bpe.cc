#include "engine/tokenizer/bpe.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/tokenizer/bpe_vocabulary.h"
#include "engine/tokenizer/gpt2_split.h"

namespace hippodrome {
namespace {

constexpr size_t kNone = SIZE_MAX;
constexpr uint32_t kNoRank = UINT32_MAX;

// Ranks are below 2^24 and words shorter than 2^40 bytes.
constexpr int kPositionBits = 40;
constexpr uint64_t kPositionMask = (uint64_t{1} << kPositionBits) - 1;

// Merges the bytes of words into tokens. Keeps its buffers from word to word. Not thread-safe.
class BpeMerger {
 public:
  // `vocabulary` must outlive the merger.
  explicit BpeMerger(const BpeVocabulary& vocabulary) : vocabulary_(vocabulary) {}

  // Appends the tokens of `word`: again and again the pair of adjacent tokens with the lowest rank,
  // the leftmost of these, becomes one token. O(n log n) in the bytes of the word.
  void Append(std::string_view word, std::vector<int32_t>& ids);

 private:
  // A token of the word, in a linked list over the positions of first bytes.
  struct Node {
    int32_t token = 0;
    BpeMerge merge;       // of this token and the next one
    size_t previous = 0;  // kNone at the ends
    size_t next = 0;
  };

  void FindMerge(size_t position);
  void Merge(size_t position);

  const BpeVocabulary& vocabulary_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> heap_;  // rank and position of possible merges, some of them outdated
};

// Notes the merge of the token at `position` with the next one, if there is one.
void BpeMerger::FindMerge(size_t position) {
  Node& node = nodes_[position];
  node.merge.rank = kNoRank;
  if (node.next == kNone) return;
  const auto found =
      vocabulary_.merges.find(BpeVocabulary::PairKey(node.token, nodes_[node.next].token));
  if (found == vocabulary_.merges.end()) return;
  node.merge = found->second;
  heap_.push_back(uint64_t{node.merge.rank} << kPositionBits | position);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void BpeMerger::Merge(size_t position) {
  Node& node = nodes_[position];
  Node& gone = nodes_[node.next];
  gone.merge.rank = kNoRank;
  node.token = node.merge.token;
  node.next = gone.next;
  if (node.next != kNone) nodes_[node.next].previous = position;
  FindMerge(position);
  if (node.previous != kNone) FindMerge(node.previous);
}

void BpeMerger::Append(std::string_view word, std::vector<int32_t>& ids) {
  nodes_.resize(word.size());
  for (size_t i = 0; i < word.size(); ++i) {
    nodes_[i].token = vocabulary_.byte_tokens[static_cast<uint8_t>(word[i])];
    nodes_[i].previous = i == 0 ? kNone : i - 1;
    nodes_[i].next = i + 1 == word.size() ? kNone : i + 1;
  }
  heap_.clear();
  for (size_t i = 0; i < word.size(); ++i) FindMerge(i);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const uint64_t best = heap_.back();
    heap_.pop_back();
    const size_t position = best & kPositionMask;
    if (nodes_[position].merge.rank == best >> kPositionBits) Merge(position);
  }
  for (size_t i = 0; i != kNone && i < nodes_.size(); i = nodes_[i].next) {
    ids.push_back(nodes_[i].token);
  }
}

}  // namespace

struct BpeTokenizer::Impl {
  BpeVocabulary vocabulary;
};

BpeTokenizer::BpeTokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BpeTokenizer::~BpeTokenizer() = default;

absl::StatusOr<std::unique_ptr<BpeTokenizer>> BpeTokenizer::Parse(const std::string& vocab_json,
                                                                  const std::string& merges) {
  HIPPODROME_ASSIGN_OR_RETURN(BpeVocabulary vocabulary, ParseBpeVocabulary(vocab_json, merges));
  auto impl = std::make_unique<Impl>(Impl{std::move(vocabulary)});
  return std::unique_ptr<BpeTokenizer>(new BpeTokenizer(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<BpeTokenizer>> BpeTokenizer::Read(const std::string& directory) {
  constexpr size_t kLargestFile = size_t{16} << 20;
  const auto vocab = ReadSmallFile(directory + "/vocab.json", kLargestFile);
  const auto merges = ReadSmallFile(directory + "/merges.txt", kLargestFile);
  if (absl::IsNotFound(vocab.status()) && absl::IsNotFound(merges.status())) {
    return NotFound(directory + " has neither vocab.json nor merges.txt");
  }
  for (const absl::Status& status : {vocab.status(), merges.status()}) {
    if (!status.ok()) return InvalidArgument(Message(status));
  }
  auto tokenizer = Parse(*vocab, *merges);
  if (!tokenizer.ok()) return InvalidArgument(directory + "/" + Message(tokenizer.status()));
  return tokenizer;
}

int64_t BpeTokenizer::vocab_size() const {
  return static_cast<int64_t>(impl_->vocabulary.tokens.size());
}

int32_t BpeTokenizer::end_of_text() const { return impl_->vocabulary.end_of_text; }

std::vector<int32_t> BpeTokenizer::Encode(const std::string& text) const {
  BpeMerger merger(impl_->vocabulary);
  std::vector<int32_t> ids;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t length = FirstWordLength(rest);
    merger.Append(rest.substr(0, length), ids);
    rest.remove_prefix(length);
  }
  return ids;
}

const std::string& BpeTokenizer::Bytes(int32_t id) const {
  static const std::string* const none = new std::string();
  const std::vector<std::string>& tokens = impl_->vocabulary.tokens;
  return id < 0 || static_cast<size_t>(id) >= tokens.size() ? *none : tokens[id];
}

std::string BpeTokenizer::Decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) bytes += Bytes(id);
  return bytes;
}

}  // namespace hippodrome

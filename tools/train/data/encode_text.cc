#include "tools/train/data/encode_text.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "tools/train/data/split_text.h"

namespace hippodrome {
namespace {

// Enough to hide what a part costs besides its text.
constexpr size_t kPartBytes = 1 << 18;
// Parts between two reports of progress.
constexpr size_t kRound = 32;

// Encodes parts in parallel and appends the results in order. `encode` makes one part's result.
template <typename Part, typename Encode, typename Append>
void EncodeParts(std::span<const Part> parts, ThreadPool& pool, const Encode& encode,
                 const Append& append) {
  for (size_t begin = 0; begin < parts.size(); begin += kRound) {
    const std::span<const Part> round =
        parts.subspan(begin, std::min(kRound, parts.size() - begin));
    std::vector<decltype(encode(round[0]))> results(round.size());
    pool.Run(std::ssize(round), [&](int64_t i, int) { results[i] = encode(round[i]); });
    for (size_t i = 0; i < round.size(); ++i) append(round[i], results[i]);
  }
}

// Part of one document.
struct TextPart {
  std::string_view text;
  bool ends_document = false;
};

std::vector<TextPart> TextParts(std::string_view text) {
  std::vector<TextPart> parts;
  for (const std::string_view document : SplitDocuments(text)) {
    for (const std::string_view part : SplitBetweenWords(document, kPartBytes)) {
      parts.push_back({part});
    }
    parts.back().ends_document = true;
  }
  return parts;
}

// Consecutive sentences of one document.
struct SentencesPart {
  std::vector<std::string_view> sentences;
  size_t bytes = 0;
  bool ends_document = false;
};

std::vector<SentencesPart> SentencesParts(std::string_view text) {
  std::vector<SentencesPart> parts;
  for (const std::string_view document : SplitDocuments(text)) {
    parts.emplace_back();
    for (const std::string_view sentence : SplitSentences(document)) {
      if (parts.back().bytes >= kPartBytes) parts.emplace_back();
      parts.back().sentences.push_back(sentence);
      parts.back().bytes += sentence.size();
    }
    parts.back().ends_document = true;
  }
  return parts;
}

struct EncodedSentences {
  std::vector<int32_t> tokens;
  std::vector<int64_t> ends;
};

// A sentence may have no token: control characters alone, say.
EncodedSentences EncodeSentences(const WordPieceTokenizer& tokenizer, const SentencesPart& part) {
  EncodedSentences encoded;
  for (const std::string_view sentence : part.sentences) {
    const std::vector<WordPiece> pieces = tokenizer.Tokenize(sentence);
    if (pieces.empty()) continue;
    for (const WordPiece& piece : pieces) encoded.tokens.push_back(piece.id);
    encoded.ends.push_back(std::ssize(encoded.tokens));
  }
  return encoded;
}

void EndDocument(TokenizedText& tokens) {
  const int64_t end = std::ssize(tokens.sentence_ends);
  const int64_t begin = tokens.document_ends.empty() ? 0 : tokens.document_ends.back();
  if (end > begin) tokens.document_ends.push_back(end);
}

}  // namespace

absl::Status AppendText(const BpeTokenizer& tokenizer, std::string_view text, ThreadPool& pool,
                        const EncodeProgress& progress, TokenizedText& tokens) {
  if (tokenizer.end_of_text() < 0) {
    return FailedPrecondition("the tokenizer has no token <|endoftext|> to end documents with");
  }
  const std::vector<TextPart> parts = TextParts(text);
  const auto encode = [&](const TextPart& part) {
    return tokenizer.Encode(std::string(part.text));
  };
  int64_t done = 0;
  const auto append = [&](const TextPart& part, const std::vector<int32_t>& ids) {
    tokens.tokens.insert(tokens.tokens.end(), ids.begin(), ids.end());
    if (part.ends_document) tokens.tokens.push_back(tokenizer.end_of_text());
    progress(done += std::ssize(part.text), std::ssize(text));
  };
  EncodeParts(std::span(parts), pool, encode, append);
  return absl::OkStatus();
}

void AppendText(const WordPieceTokenizer& tokenizer, std::string_view text, ThreadPool& pool,
                const EncodeProgress& progress, TokenizedText& tokens) {
  const std::vector<SentencesPart> parts = SentencesParts(text);
  const auto encode = [&](const SentencesPart& part) { return EncodeSentences(tokenizer, part); };
  int64_t done = 0;
  const auto append = [&](const SentencesPart& part, const EncodedSentences& encoded) {
    const int64_t before = std::ssize(tokens.tokens);
    for (const int64_t end : encoded.ends) tokens.sentence_ends.push_back(before + end);
    tokens.tokens.insert(tokens.tokens.end(), encoded.tokens.begin(), encoded.tokens.end());
    if (part.ends_document) EndDocument(tokens);
    progress(done += static_cast<int64_t>(part.bytes), std::ssize(text));
  };
  EncodeParts(std::span(parts), pool, encode, append);
}

}  // namespace hippodrome

// Models for server tests: the fake engines, with or without text.
#ifndef HIPPODROME_TESTS_TESTING_FAKE_MODEL_H_
#define HIPPODROME_TESTS_TESTING_FAKE_MODEL_H_

#include <memory>
#include <string>

#include "server/handlers/served_model.h"
#include "tests/testing/fake_encoder.h"
#include "tests/testing/fake_engine.h"

namespace hippodrome {

// `engine`, where given, receives a pointer to the engine, which lives as long as the model.
ModelParts NewFakeModel(const std::string& name, const FakeEngineOptions& options = {},
                        FakeEngine** engine = nullptr, bool with_tokenizer = true);

// The tokenizer is that of NewSmallWordPiece(), which has fewer tokens than the engine.
ModelParts NewFakeEncoderModel(const std::string& name, const FakeEncoderOptions& options = {},
                               FakeEncoder** engine = nullptr, bool with_tokenizer = true);

// [PAD] [UNK] [CLS] [SEP] [MASK] are 0 to 4; then "a" to "z", "##a" to "##z", ". , ? !", and the
// words "the capital of is france paris lyon": 68 tokens.
std::unique_ptr<WordPieceTokenizer> NewSmallWordPiece();

// As the server does, with default options.
std::unique_ptr<ServedModel> NewServedModel(ModelParts parts, Metrics& metrics);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_FAKE_MODEL_H_

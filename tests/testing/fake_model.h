// A model for server tests: the fake engine, with or without text.
#ifndef HIPPODROME_TESTS_TESTING_FAKE_MODEL_H_
#define HIPPODROME_TESTS_TESTING_FAKE_MODEL_H_

#include <string>

#include "server/served_model.h"
#include "tests/testing/fake_engine.h"

namespace hippodrome {

// `engine`, where given, receives a pointer to the engine, which lives as long as the model.
ModelParts NewFakeModel(const std::string& name, const FakeEngineOptions& options = {},
                        FakeEngine** engine = nullptr, bool with_tokenizer = true);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_FAKE_MODEL_H_

// JAX's random numbers, so that both engines drop the same units and add the same noise: threefry2x32 (Salmon et al.
// 2011) of the number of a cell, under the key that was drawn for a step.
#pragma once

#include "vectors.h"

namespace castlereg {
namespace CASTLEREG_ISA {

struct Key {
    uint32_t first, second;
};

CASTLEREG_INLINE Bits turned(Bits x, int by) { return (x << by) | (x >> (32 - by)); }

// 32 random bits for each of the numbers of cells.
inline Bits random_bits(Key key, Bits cell) {
    const uint32_t keys[3] = {key.first, key.second, key.first ^ key.second ^ 0x1BD11BDAu};
    const int turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    Bits x = Bits{} + keys[0], y = cell + keys[1];
#pragma GCC unroll 5
    for (int round = 0; round < 5; ++round) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            x += y;
            y = turned(y, turns[round % 2][i]) ^ x;
        }
        x += keys[(round + 1) % 3];
        y += keys[(round + 2) % 3] + uint32_t(round + 1);
    }
    return x ^ y;
}

// Numbers from 0 to below 1.
inline Vec<float> uniform(Key key, Bits cell) {
    Bits bits = (random_bits(key, cell) >> 9) | 0x3f800000u;
    Vec<float> x;
    std::memcpy(&x, &bits, sizeof x);
    return x - all(1.0f);
}

// A standard normal number by the inverse of the error function (Giles 2010), as in XLA.
inline float normal(float between_minus_one_and_one) {
    const float x = between_minus_one_and_one;
    float w = -std::log1p(-x * x), p;
    if (w < 5.0f) {
        w -= 2.5f;
        const float c[9] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                            -0.00125372503f, -0.00417768164f, 0.246640727f, 1.50140941f};
        p = c[0];
        for (int i = 1; i < 9; ++i) p = c[i] + p * w;
    } else {
        w = std::sqrt(w) - 3.0f;
        const float c[9] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                            -0.0076224613f, 0.00943887047f, 1.00167406f, 2.83297682f};
        p = c[0];
        for (int i = 1; i < 9; ++i) p = c[i] + p * w;
    }
    return 1.41421356f * (p * x);
}

}  // namespace CASTLEREG_ISA
}  // namespace castlereg

"""Published counts of yes-or-no annotations: three models and four people on 2,552 questions about framing.

Each word is a pattern with its count: the model's answer, then those of the four people; "-" for no answer, "r" for a
third one. C. R. Frermann et al. (2023), as used by N. Calderon, R. Reichart, R. Dror (2025), arXiv:2501.10970, whose
repository (nitaytech/AltTest) prints the winning rates and advantage probabilities below for ε = .15.
"""

PUBLISHED = {"gpt-4o-mini": (1.00, 0.87), "llama-31": (0.50, 0.80), "mistral-v03": (0.25, 0.80)}
PATTERNS = {
    "gpt-4o-mini": """
        n-nnn109 n-nny7 n-nyn7 n-nyy1 n-rnn1 n-ynn5 n-yny5 n-yyn8 n-yyy5 nnn-n71 nnn-y5 nnnn-593 nnny-26 nny-n9
        nny-y4 nnyn-72 nnyy-34 nrrn-1 nryn-1 nyn-n5 nynn-28 nyny-9 nyrn-2 nyy-n2 nyy-y4 nyyn-40 nyyr-1 nyyy-27
        y-nnn41 y-nny10 y-nyn11 y-nyy19 y-ynn12 y-yny4 y-yyn13 y-yyy94 ynn-n35 ynn-y7 ynnn-210 ynny-62 yny-n17
        yny-y22 ynyn-68 ynyy-91 yyn-n5 yyn-y11 yynn-41 yyny-67 yyry-1 yyy-n17 yyy-y72 yyyn-61 yyyy-479
    """,
    "llama-31": """
        n-nnn101 n-nny9 n-nyn7 n-nyy4 n-rnn1 n-ynn9 n-yny5 n-yyn10 n-yyy30 nnn-n67 nnn-y6 nnnn-560 nnny-31 nny-n9
        nny-y6 nnyn-73 nnyy-37 nrrn-1 nyn-n7 nyn-y5 nynn-30 nyny-19 nyrn-1 nyy-n7 nyy-y19 nyyn-53 nyyr-1 nyyy-117
        y-nnn49 y-nny8 y-nyn11 y-nyy16 y-ynn8 y-yny4 y-yyn11 y-yyy69 ynn-n39 ynn-y6 ynnn-243 ynny-57 yny-n17 yny-y20
        ynyn-67 ynyy-88 yryn-1 yyn-n3 yyn-y6 yynn-39 yyny-57 yyrn-1 yyry-1 yyy-n12 yyy-y57 yyyn-48 yyyy-389
    """,
    "mistral-v03": """
        n-nnn104 n-nny11 n-nyn11 n-nyy6 n-rnn1 n-ynn13 n-yny6 n-yyn8 n-yyy34 nnn-n68 nnn-y8 nnnn-626 nnny-45 nny-n14
        nny-y9 nnyn-90 nnyy-61 nrrn-1 nryn-1 nyn-n8 nyn-y3 nynn-39 nyny-30 nyrn-2 nyry-1 nyy-n10 nyy-y30 nyyn-70
        nyyr-1 nyyy-169 y-nnn46 y-nny6 y-nyn7 y-nyy14 y-ynn4 y-yny3 y-yyn13 y-yyy65 ynn-n38 ynn-y4 ynnn-177 ynny-43
        yny-n12 yny-y17 ynyn-50 ynyy-64 yyn-n2 yyn-y8 yynn-30 yyny-46 yyy-n9 yyy-y46 yyyn-31 yyyy-337
    """,
}

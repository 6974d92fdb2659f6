"""Statistics for annotation: agreement, consensus, calibration and monitoring. Needs numpy and scipy, but no Django.

Agreement between raters
    rating_patterns.count_patterns            ratings -> pattern counts, the input of every step statistic
    agreement.estimate_step_statistics        alpha, AC1, AC2, kappa, percent agreement, with intervals and reasons
    agreement.estimate_first_error_agreement  agreement on the first wrong step

Consensus
    label_votes.take_majority                 majority label and share per task
    label_votes.fit_votes                     Dawid-Skene for labels
    first_error_reports.majority_by_place     majority votes on the first wrong step
    first_error_dawid_skene.fit_reports       Dawid-Skene for the first wrong step, with stopping raters
    calibration                               calibration error, temperature, acceptance threshold

Uncertainty
    intervals                                 Wilson, Clopper-Pearson, cluster jackknife and bootstrap
    estimation.estimate                       a value with its intervals, or the reason why it is undefined

Monitoring
    confusion                                 recall, missed errors and false alarms against a reference
    rater_protection.weigh_evidence           evidence that a rater's work is worthless, at a stated error rate
    sequential_tests                          SPRT and CUSUM on gold answers
    rater_signals                             speed, runs and rates that may need attention
    strata                                    stratified draws of gold traces

Machines beside people
    machine_agreement                         agreement of a machine with people, its missed errors and false alarms
    reliability.estimate_reliability          reliability bins, Brier score, calibration error of probabilities
    alternative_annotator                     whether a machine may stand in for a person
    machine_licenses.bound_strata             where a machine's labels keep a promised precision
    drift                                     whether a licensed machine has become worse
    exposure_effects                          what seeing a machine's labels does to raters, and a test for harm
    alpha_spending                            boundaries of a test that looks repeatedly
    prediction_powered                        figures of a pool from few labels by people and many by a machine

Files
    ratings_file, crowd_analysis              CSV of ratings -> agreement report or consensus labels
"""

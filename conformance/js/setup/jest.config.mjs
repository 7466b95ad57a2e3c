export default { globalSetup: '../../../clients/javascript/tabletop-setup.mjs', testMatch: ['**/*.test.mjs'], transform: {} }
